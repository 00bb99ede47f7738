// cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
use readings::{parse_line, parse_report, total, BadLine, BadReading};
use std::error::Error;

// What is compared is plain data: an equality that the crate defines proves nothing.
type Bad = (usize, String);

fn bad(index: usize, value: &str) -> Bad {
    (index, value.to_string())
}

fn of_line(line: &str) -> Result<Vec<i32>, Bad> {
    parse_line(line).map_err(|error: BadReading| (error.index, error.value))
}

fn of_total(line: &str) -> Result<i64, Bad> {
    total(line).map_err(|error: BadReading| (error.index, error.value))
}

fn of_report(report: &str) -> Result<Vec<Vec<i32>>, (usize, Bad)> {
    parse_report(report).map_err(|error: BadLine| (error.line, (error.reading.index, error.reading.value)))
}

#[test]
fn good_lines() {
    assert_eq!(of_line("17, -4,20"), Ok(vec![17, -4, 20]));
    assert_eq!(of_line("0"), Ok(vec![0]));
    assert_eq!(of_line("\t+7 ,\t8 "), Ok(vec![7, 8]));
    assert_eq!(of_line("007,-0"), Ok(vec![7, 0]));
}

#[test]
fn limits_of_32_bits() {
    assert_eq!(of_line("2147483647,-2147483648"), Ok(vec![i32::MAX, i32::MIN]));
}

#[test]
fn no_readings() {
    assert_eq!(of_line(""), Ok(vec![]));
    assert_eq!(of_line("  \t "), Ok(vec![]));
}

#[test]
fn long_line() {
    let wanted: Vec<i32> = (-500..500).collect();
    let line = wanted.iter().map(i32::to_string).collect::<Vec<_>>().join(" , ");
    assert_eq!(of_line(&line), Ok(wanted));
}

#[test]
fn sums() {
    assert_eq!(of_total("1,2,3"), Ok(6));
    assert_eq!(of_total(""), Ok(0));
    assert_eq!(of_total("2147483647,2147483647,1"), Ok(4294967295));
}

#[test]
fn good_reports() {
    assert_eq!(of_report("1,2\n\n3\n"), Ok(vec![vec![1, 2], vec![], vec![3]]));
    assert_eq!(of_report(""), Ok(vec![]));
}

#[test]
fn texts_of_errors() {
    let reading = BadReading { index: 3, value: "n/a".to_string() };
    assert_eq!(reading.to_string(), "reading 3 is not a number: \"n/a\"");
    assert_eq!(BadLine { line: 9, reading }.to_string(), "line 9: reading 3 is not a number: \"n/a\"");
    let _: &dyn Error = &BadReading { index: 0, value: String::new() };
}

#[test]
fn bad_reading_at_each_place() {
    for index in 0..20 {
        let mut fields: Vec<String> = (0..20).map(|number: i32| number.to_string()).collect();
        fields[index] = format!("x{index}");
        assert_eq!(of_line(&fields.join(",")), Err(bad(index, &format!("x{index}"))));
    }
}

#[test]
fn value_is_trimmed() {
    assert_eq!(of_line("1,  n/a\t,3"), Err(bad(1, "n/a")));
    assert_eq!(of_line("  two words  "), Err(bad(0, "two words")));
}

#[test]
fn first_of_several() {
    assert_eq!(of_line("5,a,b,c"), Err(bad(1, "a")));
}

#[test]
fn nothing_is_bad() {
    assert_eq!(of_line("1,,2"), Err(bad(1, "")));
    assert_eq!(of_line("1,"), Err(bad(1, "")));
    assert_eq!(of_line(","), Err(bad(0, "")));
    assert_eq!(of_line("4,  ,"), Err(bad(1, "")));
}

#[test]
fn kinds_of_bad() {
    for value in ["1.5", "0x10", "--1", "1e3", "٣", "1_000", "+", "-", "NaN", "2147483648", "-2147483649"] {
        assert_eq!(of_line(&format!("1,2,{value}")), Err(bad(2, value)), "{value}");
    }
}

#[test]
fn total_passes_it_on() {
    assert_eq!(of_total("1,zwei,3"), Err(bad(1, "zwei")));
    assert_eq!(of_total("x"), Err(bad(0, "x")));
}

#[test]
fn report_names_line_and_reading() {
    assert_eq!(of_report("1,2\n\n3,?\n!"), Err((3, bad(1, "?"))));
    assert_eq!(of_report("oops"), Err((1, bad(0, "oops"))));
    for line in 1..12 {
        let mut lines = vec!["1,2"; 12];
        lines[line - 1] = "1,2,three";
        assert_eq!(of_report(&lines.join("\n")), Err((line, bad(2, "three"))));
    }
}
