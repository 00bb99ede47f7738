// Package fieldlog makes the log lines of the gateway. See README.md.
package fieldlog

import "slices"

// Field is a key and what it says.
type Field struct {
	Key   string
	Value string
}

// Logger makes lines that all carry its fields. It is a value: deriving from it leaves it as it is.
type Logger struct {
	fields []Field
}

// New makes a logger with these fields.
func New(fields ...Field) Logger {
	return Logger{}.With(fields...)
}

// With derives a logger that has these fields as well. A known key keeps its place and takes the new value.
func (l Logger) With(fields ...Field) Logger {
	l.fields = slices.Clone(l.fields)
	for _, field := range fields {
		if at := l.find(field.Key); at >= 0 {
			l.fields[at].Value = field.Value
		} else {
			l.fields = append(l.fields, field)
		}
	}
	return l
}

// Without derives a logger that lacks the fields of these keys.
func (l Logger) Without(keys ...string) Logger {
	var kept []Field
	for _, field := range l.fields {
		if !slices.Contains(keys, field.Key) {
			kept = append(kept, field)
		}
	}
	l.fields = kept
	return l
}

// Fields are the logger's fields in their order.
func (l Logger) Fields() []Field {
	return slices.Clone(l.fields)
}

// find is the place of a key, or -1.
func (l Logger) find(key string) int {
	return slices.IndexFunc(l.fields, func(field Field) bool { return field.Key == key })
}
