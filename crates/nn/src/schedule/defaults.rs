//! What files of settings may leave out.

use super::steps::Steps;

pub(super) fn all_steps() -> Steps {
    Steps::ALL
}

pub(super) fn one() -> usize {
    1
}

pub(super) fn pct_start() -> f64 {
    0.3
}

pub(super) fn div_factor() -> f64 {
    25.0
}

pub(super) fn final_div_factor() -> f64 {
    1e4
}

pub(super) fn gamma() -> f64 {
    0.1
}

pub(super) fn power() -> f64 {
    1.0
}
