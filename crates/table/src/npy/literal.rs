/// The subset of Python's literals that occurs in headers of arrays.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Text(String),
    Number(u64),
    Truth(bool),
    Tuple(Vec<Literal>),
    List(Vec<Literal>),
    Dict(Vec<(Literal, Literal)>),
}

/// How deeply literals may be nested; each level of a structured array within another takes two levels.
const MAX_DEPTH: usize = 32;

impl Literal {
    /// Parses `text`, which may have surrounding blanks, as one literal.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut rest = text;
        let literal = value(&mut rest, 0)?;
        rest.trim().is_empty().then_some(literal)
    }

    /// The numbers of a tuple or list of numbers.
    pub(super) fn into_numbers(self) -> Option<Vec<u64>> {
        let (Self::Tuple(items) | Self::List(items)) = self else { return None };
        let number = |item| match item {
            Self::Number(number) => Some(number),
            _ => None,
        };
        items.into_iter().map(number).collect()
    }

    /// The text that a tuple starts with: the name of a field.
    pub(super) fn first_text(&self) -> Option<&str> {
        match self {
            Self::Tuple(items) => match items.first()? {
                Self::Text(text) => Some(text),
                _ => None,
            },
            _ => None,
        }
    }
}

fn value(rest: &mut &str, depth: usize) -> Option<Literal> {
    if depth > MAX_DEPTH {
        return None;
    }
    *rest = rest.trim_start();
    let first = rest.chars().next()?;
    match first {
        '\'' | '"' => text(rest, first).map(Literal::Text),
        '0'..='9' => number(rest).map(Literal::Number),
        '(' => {
            let (mut items, commas) = items(rest, ')', |rest| value(rest, depth + 1))?;
            // `(1)` is not a tuple, but a number in parentheses.
            if items.len() == 1 && commas == 0 { items.pop() } else { Some(Literal::Tuple(items)) }
        }
        '[' => items(rest, ']', |rest| value(rest, depth + 1)).map(|(items, _)| Literal::List(items)),
        '{' => {
            let pair = |rest: &mut &str| {
                let key = value(rest, depth + 1)?;
                *rest = rest.trim_start().strip_prefix(':')?;
                Some((key, value(rest, depth + 1)?))
            };
            items(rest, '}', pair).map(|(pairs, _)| Literal::Dict(pairs))
        }
        _ => {
            let (word, truth) = [("True", true), ("False", false)].into_iter().find(|(word, _)| rest.starts_with(word))?;
            *rest = &rest[word.len()..];
            Some(Literal::Truth(truth))
        }
    }
}

/// The items between brackets, and the number of commas.
fn items<T>(rest: &mut &str, close: char, item: impl Fn(&mut &str) -> Option<T>) -> Option<(Vec<T>, usize)> {
    let (mut items, mut commas) = (Vec::new(), 0);
    *rest = &rest[1..];
    loop {
        *rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix(close) {
            *rest = behind;
            return Some((items, commas));
        }
        if items.len() > commas {
            return None;
        }
        items.push(item(rest)?);
        *rest = rest.trim_start();
        if let Some(behind) = rest.strip_prefix(',') {
            *rest = behind;
            commas += 1;
        }
    }
}

/// Text without escapes, which in headers can only occur in names of fields.
fn text(rest: &mut &str, quote: char) -> Option<String> {
    let (text, behind) = rest[1..].split_once(quote)?;
    *rest = behind;
    (!text.contains(['\\', '\n'])).then(|| text.to_owned())
}

fn number(rest: &mut &str) -> Option<u64> {
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, behind) = rest.split_at(end);
    // Python 2 wrote large numbers as `28L`.
    *rest = behind.strip_prefix('L').unwrap_or(behind);
    digits.parse().ok()
}
