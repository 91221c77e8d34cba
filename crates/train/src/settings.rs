//! Settings as data: read from TOML, recorded as JSON, shown and compared by their names.

pub(crate) mod direction;
pub(crate) mod duration;
pub(crate) mod text;

use std::collections::BTreeSet;
use std::path::Path;

use brisk_atomic_file::nearest;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::Error;

/// The settings in a TOML file.
pub(crate) fn load<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    let text = brisk_atomic_file::open_regular_file(path).and_then(std::io::read_to_string);
    from_toml(&text.map_err(Error::io(path, "read the settings"))?)
}

/// The settings in the text of a TOML file.
pub(crate) fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    toml::from_str(text).map_err(|cause| {
        let reason = in_words(&cause.message().replace('\n', " "));
        let span = cause.span().filter(|span| !span.is_empty());
        let place = span.map(|span| text[..span.start].matches('\n').count());
        let line = place.and_then(|line| Some((line + 1, text.lines().nth(line)?.trim().to_owned())));
        Error::SettingsFile { line, reason }
    })
}

/// The message of a parser in the words of a user rather than Rust's, and with the name that was probably meant.
fn in_words(message: &str) -> String {
    const WORDS: [(&str, &str); 10] = [
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected u8", "expected a whole number, 0 or more"),
        ("expected f64", "expected a number"),
        ("expected f32", "expected a number"),
        ("expected a nonzero usize", "expected at least 1"),
        ("duplicate field `schedule`", "duplicate field `schedule`, which `learning_rate` sets, too"),
        ("expected a boolean", "expected true or false"),
        ("expected a tuple of size 2", "expected a pair of a step and a rate"),
    ];
    let message = WORDS.iter().fold(message.to_owned(), |message, (rust, words)| message.replace(rust, words));
    let mut names = message.split('`').skip(1).step_by(2);
    let meant = if message.starts_with("unknown ") { names.next().and_then(|found| nearest(found, names)) } else { None };
    meant.map_or(message.clone(), |meant| format!("{message}; did you mean `{meant}`?"))
}

/// The settings as JSON.
pub(crate) fn json(settings: &impl Serialize) -> Result<Value, Error> {
    // By way of text, which has the shortest digits of an f32.
    let text = serde_json::to_string(settings).and_then(|text| serde_json::from_str(&text));
    text.map_err(|cause| Error::SettingsFile { line: None, reason: cause.to_string() })
}

/// The names of the settings and their values as text; a setting with parts is followed by them, as `part.name`, and its own
/// value is its `name` or a list of the parts.
pub(crate) fn by_name(settings: &impl Serialize) -> Result<Vec<(String, String)>, Error> {
    let mut all = Vec::new();
    if let Value::Object(settings) = json(settings)? {
        settings.iter().for_each(|(name, value)| add_by_name(value, name, &mut all));
    }
    Ok(all)
}

fn add_by_name(value: &Value, name: &str, all: &mut Vec<(String, String)>) {
    let Value::Object(parts) = value else {
        return all.push((name.to_owned(), in_text(value)));
    };
    let names = || parts.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
    all.push((name.to_owned(), parts.get("name").map_or_else(names, in_text)));
    for (part, value) in parts.iter().filter(|(part, _)| *part != "name") {
        add_by_name(value, &joined(name, part), all);
    }
}

/// Calls `different` with the name and both values of each setting that differs.
pub(crate) fn compare(theirs: &Value, ours: &Value, name: &str, different: &mut impl FnMut(String, [String; 2])) {
    match (theirs, ours) {
        // All settings, of which one version may have more than another.
        (Value::Object(a), Value::Object(b)) if name.is_empty() => {
            let all: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            let of = |settings: &Map<String, Value>, name: &str| settings.get(name).cloned().unwrap_or_default();
            all.into_iter().for_each(|name| compare(&of(a, name), &of(b, name), name, different));
        }
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().zip(b.values()).for_each(|((part, a), b)| compare(a, b, &joined(name, part), different));
        }
        (a, b) if a != b => different(name.to_owned(), [in_text(a), in_text(b)]),
        _ => {}
    }
}

fn joined(name: &str, part: &str) -> String {
    if name.is_empty() { part.to_owned() } else { format!("{name}.{part}") }
}

fn in_text(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) => list(items.iter().map(in_text).collect()),
        Value::Object(parts) => list(parts.iter().map(|(name, value)| format!("{name} {}", in_text(value))).collect()),
        value => value.to_string(),
    }
}
