module fieldlog

go 1.24
