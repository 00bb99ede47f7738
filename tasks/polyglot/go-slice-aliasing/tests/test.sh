#!/bin/sh
# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
# The driver is a module that stands beside the workdir and uses it where it is: nothing is written there.
# It has a directory of its own because Go ignores a go.mod that lies in TMPDIR itself.
exec cab-tests unittest --driver '"$BUILD/driver"' --build '
set -eu
workdir=$PWD
mkdir "$BUILD/module"
cp "$TESTS/driver.go" "$BUILD/module/"
cd "$BUILD/module"
printf "module driver\n\ngo 1.24\n\nrequire fieldlog v0.0.0\n\nreplace fieldlog => %s\n" "$workdir" >go.mod
export CGO_ENABLED=0 GOENV=off GOFLAGS=-mod=readonly GOPROXY=off GOTOOLCHAIN=local GOWORK=off
go build -o "$BUILD/driver" .'
