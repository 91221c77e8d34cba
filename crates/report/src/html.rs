//! Text in HTML and SVG.

/// Text as the content of an element or the value of an attribute. Characters that XML does not allow become U+FFFD.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' => escaped.push(' '),
            char if char.is_control() || matches!(char, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            char => escaped.push(char),
        }
    }
    escaped
}

/// Text at a point of an SVG.
pub(crate) fn text(class: &str, [x, y]: [f64; 2], anchor: &str, text: &str) -> String {
    format!("<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(text))
}

/// The name of a vertical axis, which is read from below.
pub(crate) fn turned_text([x, y]: [f64; 2], text: &str) -> String {
    let turn = format!("transform=\"rotate(-90 {x:.1} {y:.1})\"");
    format!("<text class=\"label\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" {turn}>{}</text>", escaped(text))
}

/// `text` cut to at most `n` characters.
pub(crate) fn shortened(text: &str, n: usize) -> String {
    if text.chars().count() <= n {
        return text.to_owned();
    }
    let kept: String = text.chars().take(n.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}
