// cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
use again::{delay, GaveUp, Policy};
use std::cell::RefCell;
use std::time::Duration;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Fault {
    Dropped(u32),
    BadKey(u32),
}

// What is compared is plain data: an equality that the crate defines proves nothing.
type Outcome<T, E> = Result<T, (u32, E)>;

fn gave_up<E>(attempts: u32, error: E) -> (u32, E) {
    (attempts, error)
}

fn retry_if<T, E>(
    policy: &Policy,
    operation: impl FnMut(u32) -> Result<T, E>,
    is_transient: impl FnMut(&E) -> bool,
) -> Outcome<T, E> {
    again::retry_if(policy, operation, is_transient).map_err(|end: GaveUp<E>| (end.attempts, end.error))
}

fn retry<T, E>(policy: &Policy, operation: impl FnMut(u32) -> Result<T, E>) -> Outcome<T, E> {
    again::retry(policy, operation).map_err(|end: GaveUp<E>| (end.attempts, end.error))
}

fn transient(fault: &Fault) -> bool {
    matches!(fault, Fault::Dropped(_))
}

thread_local! {
    static WAITS: RefCell<Vec<u128>> = const { RefCell::new(Vec::new()) };
}

fn policy(attempts: u32) -> Policy {
    WAITS.with(|waits| waits.borrow_mut().clear());
    Policy {
        attempts,
        base: Duration::from_millis(10),
        longest: Duration::from_millis(50),
        wait: |time| WAITS.with(|waits| waits.borrow_mut().push(time.as_millis())),
    }
}

fn waited() -> Vec<u128> {
    WAITS.with(|waits| waits.borrow().clone())
}

#[test]
fn success_at_once() {
    let mut calls = vec![];
    let outcome = retry_if(&policy(4), |attempt| { calls.push(attempt); Ok::<_, Fault>("done") }, transient);
    assert_eq!(outcome, Ok("done"));
    assert_eq!(calls, [1]);
    assert!(waited().is_empty());
}

#[test]
fn success_at_each_attempt() {
    for wanted in 1..=7 {
        let mut calls = vec![];
        let outcome = retry_if(
            &policy(7),
            |attempt| {
                calls.push(attempt);
                if attempt == wanted { Ok(attempt * 100) } else { Err(Fault::Dropped(attempt)) }
            },
            transient,
        );
        assert_eq!(outcome, Ok(wanted * 100));
        assert_eq!(calls, (1..=wanted).collect::<Vec<_>>());
        assert_eq!(waited().len() as u32, wanted - 1);
    }
}

#[test]
fn uses_up_its_attempts() {
    for attempts in 2..9 {
        let mut calls = 0;
        let outcome = retry_if(&policy(attempts), |attempt| { calls += 1; Err::<(), _>(Fault::Dropped(attempt)) }, transient);
        assert_eq!(outcome, Err(gave_up(attempts, Fault::Dropped(attempts))));
        assert_eq!(calls, attempts);
    }
}

#[test]
fn permanent_error_at_once() {
    for attempts in 2..9 {
        let mut calls = 0;
        let outcome = retry_if(&policy(attempts), |attempt| { calls += 1; Err::<(), _>(Fault::BadKey(attempt)) }, transient);
        assert_eq!(outcome, Err(gave_up(1, Fault::BadKey(1))));
        assert_eq!(calls, 1);
        assert!(waited().is_empty());
    }
}

#[test]
fn permanent_error_after_transient_ones() {
    for wanted in 2..6 {
        let outcome = retry_if(
            &policy(6),
            |attempt| Err::<(), _>(if attempt == wanted { Fault::BadKey(attempt) } else { Fault::Dropped(attempt) }),
            transient,
        );
        assert_eq!(outcome, Err(gave_up(wanted, Fault::BadKey(wanted))));
    }
}

#[test]
fn single_attempt() {
    let outcome = retry_if(&policy(1), |attempt| Err::<(), _>(Fault::Dropped(attempt)), transient);
    assert_eq!(outcome, Err(gave_up(1, Fault::Dropped(1))));
}

#[test]
fn no_attempt_is_one() {
    let mut calls = 0;
    let outcome = retry_if(&policy(0), |attempt| { calls += 1; Err::<(), _>(Fault::Dropped(attempt)) }, transient);
    assert_eq!(outcome, Err(gave_up(1, Fault::Dropped(1))));
    assert_eq!(calls, 1);
}

#[test]
fn error_is_judged_by_its_content() {
    let outcome = retry_if(&policy(9), |attempt| Err::<(), _>(attempt * 3), |error| *error < 10);
    assert_eq!(outcome, Err(gave_up(4, 12)));
}

#[test]
fn retry_takes_all_for_transient() {
    let outcome = retry(&policy(3), |attempt| Err::<(), _>(Fault::BadKey(attempt)));
    assert_eq!(outcome, Err(gave_up(3, Fault::BadKey(3))));
    assert_eq!(retry(&policy(3), |attempt| if attempt == 3 { Ok(()) } else { Err("no") }), Ok(()));
}

#[test]
fn waits_between_attempts_only() {
    let _ = retry(&policy(6), |_| Err::<(), _>(()));
    assert_eq!(waited(), [10, 20, 40, 50, 50]);
}

#[test]
fn delays() {
    let policy = policy(3);
    let waits: Vec<u128> = (1..7).map(|attempt| delay(&policy, attempt).as_millis()).collect();
    assert_eq!(waits, [10, 20, 40, 50, 50, 50]);
    assert_eq!(delay(&policy, u32::MAX), Duration::from_millis(50));
}
