//! Parsers of option values.

use std::ops::RangeInclusive;

use brisk_nn::tensor::Precision;
use brisk_nn::tensor::program::Selection;
use brisk_table::{Channels, Decimal, Delimiter};
use clap::builder::{OsStringValueParser, PossibleValuesParser, TypedValueParser};

/// The largest count that options accept.
pub const MAX_COUNT: u64 = 1 << 40;

/// A whole number in `range`.
pub fn whole<T: TryFrom<u64>>(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |word| {
        let number = word.parse().ok().filter(|number| range.contains(number));
        number.and_then(|number| T::try_from(number).ok()).ok_or_else(|| {
            let end = match *range.end() {
                MAX_COUNT => "2^40".to_owned(),
                end => end.to_string(),
            };
            format!("expected a whole number from {} to {end}", range.start())
        })
    }
}

/// A number above 0, at most `max`.
pub fn positive(max: f64) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |word| match word.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= max => Ok(number),
        Ok(number) if number > max && max < f64::MAX => Err(format!("expected {max} or less")),
        _ => Err("expected a number above 0".to_owned()),
    }
}

/// A number from 0 to 1.
pub fn share() -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    |word| word.parse().ok().filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| "expected a number from 0 to 1".to_owned())
}

/// Values separated by commas, each parsed by `parse`.
pub fn list<T>(
    parse: impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static,
) -> impl Fn(&str) -> Result<Vec<T>, String> + Clone + Send + Sync + 'static {
    move |words| words.split(',').map(|word| parse(word.trim()).map_err(|error| format!("`{word}`: {error}"))).collect()
}

/// A decimal mark: `.` or `point`, `,` or `comma`.
pub fn decimal() -> impl TypedValueParser<Value = Decimal> {
    one_of([(".", Decimal::Point), (",", Decimal::Comma), ("point", Decimal::Point), ("comma", Decimal::Comma)])
}

/// A delimiter: an ASCII character, or `tab`.
///
/// # Errors
/// For any other word.
pub fn delimiter(word: &str) -> Result<Delimiter, String> {
    match word.as_bytes() {
        b"tab" | b"\\t" => Ok(Delimiter::Byte(b'\t')),
        [byte] if byte.is_ascii() => Ok(Delimiter::Byte(*byte)),
        _ => Err("expected one ASCII character, or `tab`".to_owned()),
    }
}

/// One of a few words, and the value that each stands for.
pub fn one_of<T: Clone + Send + Sync + 'static, const N: usize>(
    words: [(&'static str, T); N],
) -> impl TypedValueParser<Value = T> {
    let names = words.each_ref().map(|(name, _)| *name);
    PossibleValuesParser::new(names).map(move |found| {
        let word = words.iter().find(|(name, _)| *name == found);
        word.map(|(_, value)| value.clone()).expect("the parser accepts only the names of `words`")
    })
}

/// A device, as named by [`Selection`]. Whether it exists is checked when it is opened.
pub fn device() -> impl TypedValueParser<Value = Selection> {
    OsStringValueParser::new().map(|word| {
        let Ok(selection) = word.to_string_lossy().parse();
        selection
    })
}

/// The precision of matrix products.
pub fn precision() -> impl TypedValueParser<Value = Precision> {
    one_of([("f32", Precision::F32), ("f16", Precision::F16), ("bf16", Precision::Bf16)])
}

/// The channels of images.
pub fn channels() -> impl TypedValueParser<Value = Channels> {
    one_of([("first", Channels::AsStored), ("grey", Channels::Grey), ("rgb", Channels::Rgb), ("rgba", Channels::Rgba)])
}

/// Height and width of images: `64` or `48x64`.
pub fn image_size() -> impl Fn(&str) -> Result<[usize; 2], String> + Clone + Send + Sync + 'static {
    let side = whole(1..=1 << 14);
    move |word| match word.split_once('x') {
        None => side(word).map(|side| [side, side]),
        Some((height, width)) => Ok([side(height)?, side(width)?]),
    }
}
