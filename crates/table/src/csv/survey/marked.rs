const CURRENCIES: [&str; 8] = ["USD", "EUR", "GBP", "CHF", "JPY", "CNY", "INR", "US$"];

/// Whether text is a number with marks that make it text: a currency, a percent sign, an apostrophe before it, parentheses around
/// it, or separators between thousands.
pub(super) fn is_marked_number(text: &str) -> bool {
    const LONGEST: usize = 40;
    if text.len() > LONGEST || !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let is_mark = |c: char| matches!(c, '$' | '€' | '£' | '¥' | '₹' | '%' | '‰' | '\'' | '’' | '(' | ')') || c.is_whitespace();
    let is_sign = |c: char| matches!(c, '-' | '+' | '\u{2212}');
    let text = text.trim_start_matches(is_sign);
    let currency = CURRENCIES.iter().find_map(|currency| text.strip_prefix(currency).or_else(|| text.strip_suffix(currency)));
    let text = currency.unwrap_or(text).trim_matches(is_mark).trim_start_matches(is_sign).trim_start_matches(is_mark);
    let plain = without_separators(text).replace(',', ".");
    plain.starts_with(|c: char| c.is_ascii_digit() || c == '.') && plain.parse::<f64>().is_ok_and(f64::is_finite)
}

/// The text without the characters between groups of three digits.
fn without_separators(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let is_digit = |at: usize| chars.get(at).is_some_and(char::is_ascii_digit);
    let is_separator = |at: usize| {
        let is_one = matches!(chars[at], ',' | '.' | '\'' | '’' | '_') || chars[at].is_whitespace();
        is_one && at > 0 && is_digit(at - 1) && (1..=3).all(|after| is_digit(at + after)) && !is_digit(at + 4)
    };
    chars.iter().enumerate().filter(|&(at, _)| !is_separator(at)).map(|(_, &c)| c).collect()
}

#[cfg(test)]
mod tests {
    use super::is_marked_number;

    #[test]
    fn numbers_with_marks_are_told_from_other_text() {
        for text in [
            "12%",
            "12 %",
            "$1,234.50",
            "-$5",
            "$-5",
            "1\u{a0}234",
            "1 234 567",
            "'5",
            "EUR 3.5",
            "3,50 €",
            "1'234",
            "(1,234)",
            "1.234,5",
            "1,234,567",
        ] {
            assert!(is_marked_number(text), "{text}");
        }
        for text in ["A12", "12 kg", "12x", "192.168.0.1", "1/2", "12-13", "$", "%", "5 7", "PC 17599", "0x10"] {
            assert!(!is_marked_number(text), "{text}");
        }
    }
}
