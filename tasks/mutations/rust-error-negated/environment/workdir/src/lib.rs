//! Tries an operation more than once. See README.md.

use std::time::Duration;

/// How often, and how patiently.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Attempts in all, the first one included.
    pub attempts: u32,
    /// The delay after the first attempt.
    pub base: Duration,
    /// No delay is longer.
    pub longest: Duration,
    /// Called with the delay before each further attempt.
    pub wait: fn(Duration),
}

/// The error that ended it, and how many attempts were made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GaveUp<E> {
    pub attempts: u32,
    pub error: E,
}

/// Calls `operation` until it succeeds, fails for good, or the policy is used up.
pub fn retry_if<T, E>(
    policy: &Policy,
    mut operation: impl FnMut(u32) -> Result<T, E>,
    mut is_transient: impl FnMut(&E) -> bool,
) -> Result<T, GaveUp<E>> {
    let mut attempt = 1;
    loop {
        match operation(attempt) {
            Ok(value) => return Ok(value),
            Err(error) => {
                if is_transient(&error) || attempt >= policy.attempts {
                    return Err(GaveUp { attempts: attempt, error });
                }
            }
        }
        (policy.wait)(delay(policy, attempt));
        attempt += 1;
    }
}

/// Calls `operation` until it succeeds or the policy is used up.
pub fn retry<T, E>(policy: &Policy, operation: impl FnMut(u32) -> Result<T, E>) -> Result<T, GaveUp<E>> {
    retry_if(policy, operation, |_| true)
}

/// How long to wait after `attempt` (counted from 1).
pub fn delay(policy: &Policy, attempt: u32) -> Duration {
    let factor = 2u32.saturating_pow(attempt.saturating_sub(1));
    policy.base.saturating_mul(factor).min(policy.longest)
}
