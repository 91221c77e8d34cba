//! Numbers for people.

/// Four significant digits: `0.9412`, `1 284`, `3.2e-7`, `1.25e9`.
pub(crate) fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !value.is_finite() {
        value.to_string()
    } else if !(1e-4..1e9).contains(&size) {
        trimmed(&format!("{value:.3e}"))
    } else if size >= 1000.0 {
        let sign = if value < 0.0 { "-" } else { "" };
        format!("{sign}{}", grouped(&format!("{:.0}", size.round()), '\u{202f}'))
    } else {
        let n_digits = 3 - size.log10().floor() as i32;
        trimmed(&format!("{value:.*}", n_digits.clamp(0, 8) as usize))
    }
}

/// A label of an axis whose ticks are `step` apart.
pub(crate) fn tick(value: f64, step: f64) -> String {
    // The tick nearest to 0 may be off by rounding.
    let value = if value.abs() < step * 1e-9 { 0.0 } else { value };
    for (unit, suffix) in [(1e9, "G"), (1e6, "M"), (1e3, "k")] {
        if value.abs() >= 10.0 * unit || (value.abs() >= unit && (unit > 1e3 || step >= unit)) {
            return format!("{}{suffix}", decimals(value / unit, step / unit));
        }
    }
    if value != 0.0 && step < 1e-4 { trimmed(&format!("{value:.2e}")) } else { decimals(value, step) }
}

fn decimals(value: f64, step: f64) -> String {
    let n = (-step.log10() - 1e-9).ceil().clamp(0.0, 8.0) as usize;
    format!("{value:.n$}")
}

/// Without trailing zeros in the fraction.
fn trimmed(text: &str) -> String {
    let (number, exponent) = text.split_at(text.find('e').unwrap_or(text.len()));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    format!("{number}{exponent}")
}

/// Digits in groups of three.
pub(crate) fn grouped(digits: &str, separator: char) -> String {
    let mut text = String::with_capacity(digits.len() * 4 / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(separator);
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{number, tick};

    #[test]
    fn numbers_have_four_digits() {
        let cases = [(0.94123, "0.9412"), (12.5, "12.5"), (1284.4, "1\u{202f}284"), (-0.5, "-0.5"), (3.2e-7, "3.2e-7")];
        for (value, expected) in cases {
            assert_eq!(number(value), expected, "{value:?}");
        }
        assert_eq!(number(1.25e9), "1.25e9", "large");
        assert_eq!(number(12_345_678.0), "12\u{202f}345\u{202f}678", "groups");
    }

    #[test]
    fn ticks_have_the_digits_of_their_step() {
        let cases =
            [(0.2, 0.1, "0.2"), (1e-17, 0.1, "0.0"), (20_000.0, 10_000.0, "20k"), (1500.0, 500.0, "1500"), (3e-5, 1e-5, "3e-5")];
        for (value, step, expected) in cases {
            assert_eq!(tick(value, step), expected, "{value:?}");
        }
    }
}
