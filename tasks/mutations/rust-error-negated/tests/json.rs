// cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
//! As much of JSON as requests and answers need: no fractions, no surrogates on their own.

use std::fmt;
use std::iter::Peekable;
use std::str::Chars;

#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    Null,
    Bool(bool),
    Number(i128),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(&'static str, Json)>),
}

impl Json {
    /// Reads one value. Objects come in answers only.
    pub fn parse(line: &str) -> Json {
        let mut rest = line.chars().peekable();
        value(&mut rest)
    }

    pub fn number(&self) -> i128 {
        match self {
            Json::Number(number) => *number,
            other => panic!("no number: {other}"),
        }
    }

    pub fn text(&self) -> &str {
        match self {
            Json::Text(text) => text,
            other => panic!("no text: {other}"),
        }
    }

    pub fn list(&self) -> &[Json] {
        match self {
            Json::List(items) => items,
            other => panic!("no list: {other}"),
        }
    }
}

fn value(rest: &mut Peekable<Chars>) -> Json {
    match rest.next().expect("a value") {
        '"' => Json::Text(text(rest)),
        '[' => Json::List(list(rest)),
        first => match word(first, rest).as_str() {
            "null" => Json::Null,
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            number => Json::Number(number.parse().expect("a whole number")),
        },
    }
}

fn word(first: char, rest: &mut Peekable<Chars>) -> String {
    let mut word = String::from(first);
    while let Some(char) = rest.next_if(|char| char.is_ascii_alphanumeric()) {
        word.push(char);
    }
    word
}

fn list(rest: &mut Peekable<Chars>) -> Vec<Json> {
    let mut items = Vec::new();
    while rest.next_if_eq(&']').is_none() {
        rest.next_if_eq(&',');
        items.push(value(rest));
    }
    items
}

fn text(rest: &mut Peekable<Chars>) -> String {
    let mut text = String::new();
    loop {
        match rest.next().expect("the end of a text") {
            '"' => return text,
            '\\' => text.push(escaped(rest)),
            char => text.push(char),
        }
    }
}

fn escaped(rest: &mut Peekable<Chars>) -> char {
    match rest.next().expect("an escape") {
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => {
            let mut units = vec![unit(rest)];
            if (0xd800..0xdc00).contains(&units[0]) {
                rest.next();
                rest.next();
                units.push(unit(rest));
            }
            char::decode_utf16(units).next().expect("a unit").expect("no surrogate on its own")
        }
        char => char,
    }
}

fn unit(rest: &mut Peekable<Chars>) -> u16 {
    let digits: String = rest.take(4).collect();
    u16::from_str_radix(&digits, 16).expect("four hexadecimal digits")
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Json::Null => write!(out, "null"),
            Json::Bool(value) => write!(out, "{value}"),
            Json::Number(number) => write!(out, "{number}"),
            Json::Text(text) => quoted(out, text),
            Json::List(items) => {
                write!(out, "[")?;
                for (index, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if index > 0 { "," } else { "" })?;
                }
                write!(out, "]")
            }
            Json::Object(items) => {
                write!(out, "{{")?;
                for (index, (key, item)) in items.iter().enumerate() {
                    write!(out, "{}\"{key}\":{item}", if index > 0 { "," } else { "" })?;
                }
                write!(out, "}}")
            }
        }
    }
}

fn quoted(out: &mut fmt::Formatter, text: &str) -> fmt::Result {
    write!(out, "\"")?;
    for char in text.chars() {
        match char {
            '"' | '\\' => write!(out, "\\{char}")?,
            char if char < ' ' => write!(out, "\\u{:04x}", char as u32)?,
            char => write!(out, "{char}")?,
        }
    }
    write!(out, "\"")
}
