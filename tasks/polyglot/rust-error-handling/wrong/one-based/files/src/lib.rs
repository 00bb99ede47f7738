//! Parses what the sensors in the greenhouse send. See README.md for the format.

use std::error::Error;
use std::fmt;

/// A reading that is not a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadReading {
    /// Position in its line, counted from 0.
    pub index: usize,
    /// What the sensor sent, without the white space around it.
    pub value: String,
}

impl fmt::Display for BadReading {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "reading {} is not a number: {:?}", self.index, self.value)
    }
}

impl Error for BadReading {}

/// A bad reading in a report of many lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Line in the report, counted from 1.
    pub line: usize,
    /// What is wrong in it.
    pub reading: BadReading,
}

impl fmt::Display for BadLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.reading)
    }
}

impl Error for BadLine {}

/// The readings of one line, or the first bad one.
pub fn parse_line(line: &str) -> Result<Vec<i32>, BadReading> {
    if line.trim().is_empty() {
        return Ok(Vec::new());
    }
    line.split(',')
        .map(str::trim)
        .enumerate()
        .map(|(index, field)| field.parse().map_err(|_| BadReading { index: index + 1, value: field.to_string() }))
        .collect()
}

/// The sum of one line.
pub fn total(line: &str) -> Result<i64, BadReading> {
    Ok(parse_line(line)?.into_iter().map(i64::from).sum())
}

/// The readings of every line of a report, or the first bad one with its line.
pub fn parse_report(report: &str) -> Result<Vec<Vec<i32>>, BadLine> {
    let mut lines = Vec::new();
    for (index, line) in report.lines().enumerate() {
        lines.push(parse_line(line).map_err(|reading| BadLine { line: index + 1, reading })?);
    }
    Ok(lines)
}
