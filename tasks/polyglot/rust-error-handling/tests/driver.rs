// cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
//! Calls the crate for the tests: a request a line from descriptor 3, an answer a line to 4.

mod json;

use json::Json;
use readings::{parse_line, parse_report, total, BadLine, BadReading};
use std::error::Error;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};

fn main() {
    let requests = BufReader::new(File::open("/dev/fd/3").expect("descriptor 3"));
    let mut answers = OpenOptions::new().write(true).open("/dev/fd/4").expect("descriptor 4");
    for line in requests.lines() {
        let request = Json::parse(&line.expect("a line"));
        let answer = Json::Object(vec![("ok", answer(request.list()))]);
        writeln!(answers, "{answer}").expect("descriptor 4");
    }
}

fn answer(request: &[Json]) -> Json {
    match request[0].text() {
        "parse_line" => outcome(parse_line(request[1].text()).map(numbers).map_err(reading)),
        "total" => outcome(total(request[1].text()).map(number).map_err(reading)),
        "parse_report" => {
            let lines = |lines: Vec<Vec<i32>>| Json::List(lines.into_iter().map(numbers).collect());
            outcome(parse_report(request[1].text()).map(lines).map_err(bad_line))
        }
        "text_of_reading" => text(&a_reading(&request[1..])),
        "text_of_line" => {
            text(&BadLine { line: request[1].number() as usize, reading: a_reading(&request[2..]) })
        }
        unknown => panic!("no operation: {unknown}"),
    }
}

fn outcome(result: Result<Json, Json>) -> Json {
    match result {
        Ok(value) => Json::Object(vec![("Ok", value)]),
        Err(error) => Json::Object(vec![("Err", error)]),
    }
}

fn number(value: impl Into<i128>) -> Json {
    Json::Number(value.into())
}

fn numbers(values: Vec<i32>) -> Json {
    Json::List(values.into_iter().map(number).collect())
}

fn position(value: usize) -> Json {
    Json::Number(value as i128)
}

fn reading(error: BadReading) -> Json {
    Json::Object(vec![("index", position(error.index)), ("value", Json::Text(error.value))])
}

fn bad_line(error: BadLine) -> Json {
    Json::Object(vec![("line", position(error.line)), ("reading", reading(error.reading))])
}

fn a_reading(parts: &[Json]) -> BadReading {
    BadReading { index: parts[0].number() as usize, value: parts[1].text().to_string() }
}

fn text(error: &dyn Error) -> Json {
    Json::Text(error.to_string())
}
