// cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora

// Makes loggers, keeps them by number and answers what they hold.
package main

import (
	"bufio"
	"encoding/json"
	"fieldlog"
	"fmt"
	"os"
)

var loggers []fieldlog.Logger

func main() {
	requests, answers := bufio.NewScanner(os.NewFile(3, "requests")), os.NewFile(4, "answers")
	requests.Buffer(nil, 1<<20)
	for requests.Scan() {
		answer, err := json.Marshal(map[string]any{"ok": done(requests.Bytes())})
		if err != nil {
			panic(err)
		}
		if _, err := answers.Write(append(answer, '\n')); err != nil {
			panic(err)
		}
	}
}

// done carries out one request, which is an array of an operation's name and its arguments.
func done(request []byte) any {
	var parts []json.RawMessage
	read(request, &parts)
	var operation string
	read(parts[0], &operation)
	switch arguments := parts[1:]; operation {
	case "new":
		return kept(fieldlog.New(fields(arguments[0])...))
	case "new_from_reused":
		handed := fields(arguments[0])
		logger := fieldlog.New(handed...)
		overwrite(handed)
		return kept(logger)
	case "with":
		return kept(logger(arguments[0]).With(fields(arguments[1])...))
	case "with_reused":
		handed := fields(arguments[1])
		derived := logger(arguments[0]).With(handed...)
		overwrite(handed)
		return kept(derived)
	case "without":
		var keys []string
		read(arguments[1], &keys)
		return kept(logger(arguments[0]).Without(keys...))
	case "overwrite_fields":
		overwrite(logger(arguments[0]).Fields())
		return nil
	case "fields":
		pairs := [][2]string{}
		for _, field := range logger(arguments[0]).Fields() {
			pairs = append(pairs, [2]string{field.Key, field.Value})
		}
		return pairs
	case "line":
		var message string
		read(arguments[1], &message)
		return logger(arguments[0]).Line(message)
	default:
		panic(fmt.Sprintf("no operation %q", operation))
	}
}

func kept(logger fieldlog.Logger) int {
	loggers = append(loggers, logger)
	return len(loggers) - 1
}

func logger(number json.RawMessage) fieldlog.Logger {
	var index int
	read(number, &index)
	return loggers[index]
}

// fields has room behind its last one: a caller's slice often has.
func fields(said json.RawMessage) []fieldlog.Field {
	var pairs [][2]string
	read(said, &pairs)
	made := make([]fieldlog.Field, 0, len(pairs)+4)
	for _, pair := range pairs {
		made = append(made, fieldlog.Field{Key: pair[0], Value: pair[1]})
	}
	return made
}

// overwrite is what a caller does that uses a slice again.
func overwrite(used []fieldlog.Field) {
	all := used[:cap(used)]
	for index := range all {
		all[index] = fieldlog.Field{Key: "reused", Value: "reused"}
	}
}

func read(said []byte, into any) {
	if err := json.Unmarshal(said, into); err != nil {
		panic(err)
	}
}
