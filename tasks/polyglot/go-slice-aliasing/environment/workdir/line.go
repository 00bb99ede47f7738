package fieldlog

import (
	"strconv"
	"strings"
	"unicode"
)

// Line is the line of a message: the logger's fields in their order, then the message.
func (l Logger) Line(message string) string {
	var line strings.Builder
	for _, field := range l.fields {
		line.WriteString(field.Key + "=" + quoted(field.Value) + " ")
	}
	line.WriteString("msg=" + quoted(message))
	return line.String()
}

// quoted is the value as it stands in a line: in quotes where a collector could not read it without.
func quoted(value string) string {
	if value == "" || strings.ContainsFunc(value, needsQuotes) {
		return strconv.Quote(value)
	}
	return value
}

func needsQuotes(char rune) bool {
	return char == '=' || char == '"' || unicode.IsSpace(char) || !unicode.IsPrint(char)
}
