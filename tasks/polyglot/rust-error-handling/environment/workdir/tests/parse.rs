use readings::{parse_line, parse_report, total};

#[test]
fn parses_a_line() {
    assert_eq!(parse_line("17, -4,20"), Ok(vec![17, -4, 20]));
}

#[test]
fn sums_a_line() {
    assert_eq!(total("1,2,3"), Ok(6));
}

#[test]
fn parses_a_report() {
    assert_eq!(parse_report("1,2\n\n3\n"), Ok(vec![vec![1, 2], vec![], vec![3]]));
}

#[test]
fn survives_a_bad_reading() {
    assert!(parse_line("17,n/a,20").is_err());
}
