use again::{delay, retry, GaveUp, Policy};
use std::time::Duration;

fn policy(attempts: u32) -> Policy {
    Policy { attempts, base: Duration::from_millis(10), longest: Duration::from_millis(50), wait: |_| () }
}

#[test]
fn success_at_once() {
    assert_eq!(retry(&policy(3), |_| Ok::<_, ()>("done")), Ok("done"));
}

#[test]
fn success_at_the_second_attempt() {
    let outcome = retry(&policy(3), |attempt| if attempt == 2 { Ok(attempt) } else { Err("dropped") });
    assert_eq!(outcome, Ok(2));
}

#[test]
fn a_single_attempt() {
    let outcome = retry(&policy(1), |_| Err::<(), _>("dropped"));
    assert_eq!(outcome, Err(GaveUp { attempts: 1, error: "dropped" }));
}

#[test]
fn delays_double() {
    let waits: Vec<u128> = (1..5).map(|attempt| delay(&policy(9), attempt).as_millis()).collect();
    assert_eq!(waits, [10, 20, 40, 50]);
}
