// cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
//! Calls the crate for the tests: a request a line from descriptor 3, an answer a line to 4.

mod json;

use again::{delay, retry, retry_if, GaveUp, Policy};
use json::Json;
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::time::Duration;

thread_local! {
    static WAITS: RefCell<Vec<Json>> = const { RefCell::new(Vec::new()) };
}

fn main() {
    let requests = BufReader::new(File::open("/dev/fd/3").expect("descriptor 3"));
    let mut answers = OpenOptions::new().write(true).open("/dev/fd/4").expect("descriptor 4");
    for line in requests.lines() {
        let request = Json::parse(&line.expect("a line"));
        let answer = Json::Object(vec![("ok", answer(request.list()))]);
        writeln!(answers, "{answer}").expect("descriptor 4");
    }
}

/// ["retry_if", attempts, outcomes, transient errors], ["retry", attempts, outcomes], ["delay", attempt]
fn answer(request: &[Json]) -> Json {
    let number = |index: usize| request[index].number() as u32;
    let mut calls = Vec::new();
    let outcome = match request[0].text() {
        "retry_if" => {
            let transient = request[3].list();
            let operation = scripted(request[2].list(), &mut calls);
            retry_if(&policy(number(1)), operation, |error| transient.contains(error))
        }
        "retry" => retry(&policy(number(1)), scripted(request[2].list(), &mut calls)),
        "delay" => return millis(delay(&policy(1), number(1))),
        unknown => panic!("no operation: {unknown}"),
    };
    Json::Object(vec![
        ("outcome", plain(outcome)),
        ("calls", Json::List(calls)),
        ("waits", Json::List(WAITS.take())),
    ])
}

/// An operation that ends as the outcomes say, [true, value] or [false, error], the last one again and again.
fn scripted<'a>(
    outcomes: &'a [Json],
    calls: &'a mut Vec<Json>,
) -> impl FnMut(u32) -> Result<Json, Json> + 'a {
    |attempt| {
        assert!(calls.len() < 1000, "called without end");
        let outcome = &outcomes[calls.len().min(outcomes.len() - 1)].list();
        calls.push(Json::Number(attempt.into()));
        if outcome[0] == Json::Bool(true) { Ok(outcome[1].clone()) } else { Err(outcome[1].clone()) }
    }
}

fn policy(attempts: u32) -> Policy {
    Policy {
        attempts,
        base: Duration::from_millis(10),
        longest: Duration::from_millis(50),
        wait: |time| WAITS.with(|waits| waits.borrow_mut().push(millis(time))),
    }
}

fn plain(outcome: Result<Json, GaveUp<Json>>) -> Json {
    match outcome {
        Ok(value) => Json::Object(vec![("Ok", value)]),
        Err(end) => {
            let attempts = Json::Number(end.attempts.into());
            Json::Object(vec![("Err", Json::Object(vec![("attempts", attempts), ("error", end.error)]))])
        }
    }
}

fn millis(time: Duration) -> Json {
    Json::Number(time.as_millis() as i128)
}
