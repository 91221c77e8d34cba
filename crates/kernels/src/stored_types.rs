//! Modules over floats that are stored in 16 bits: [`Dispatch::source`].
//!
//! A WGSL file is valid as it lies, over f32. What of it depends on how floats are stored are single lines, in this wording, for a group `X` of arguments that
//! are stored alike:
//!
//! ```wgsl
//! alias X = vec4f;
//! fn load_x(v: X) -> vec4f { return v; }
//! fn store_x(v: vec4f) -> X { return v; }
//! ```
//!
//! The bindings are `array<X>`; the rest computes in `vec4f`. With `("X", DType::F16)` among a dispatch's types, `X` is `vec2u`, four floats in two words, and the
//! functions unpack and pack. Either function may be missing. In a file for two floats at a time it says `vec2f`, and `X` is `u32`.
//!
//! A file for one float at a time names what a lane computes in, `V`:
//!
//! ```wgsl
//! alias V = f32;
//! alias X = V;
//! fn load_x(v: X) -> V { return v; }
//! ```
//!
//! With a type of 16 bits among the dispatch's, `V` is `vec2f` for all groups, and the groups of 16 bits are `u32`: lanes compute two elements. So all but
//! those must have an even number of elements; the second half of a last word is padding, which anything may be written to. Constructors and comparisons say
//! `V(0.0)` rather than `0.0`.

use std::borrow::Cow;

use crate::{DType, Dispatch, Error};

/// The functions that the forms for 16 bits call: what `cast.wgsl` has ahead of its constants.
fn conversions() -> &'static str {
    let cast = include_str!("wgsl/cast.wgsl");
    cast.split_once("\noverride ").map_or(cast, |(functions, _)| functions)
}

/// What a lane computes in, and how many words that is in 16 bits.
const LANES: [(&str, &str); 3] = [("vec4f", "vec2u"), ("vec2f", "u32"), ("V", "u32")];

impl Dispatch {
    /// The module as a driver is given it: [`wgsl`](Self::wgsl), with the lines that say how floats are stored swapped for those of its
    /// [`types`](Self::types).
    ///
    /// # Errors
    /// [`Error::StoredType`] if there is no such group, or its type is none that floats are stored in.
    pub fn source(&self) -> Result<Cow<'static, str>, Error> {
        if let Some(&(group, dtype)) = self.types.iter().find(|(_, dtype)| !dtype.is_float()) {
            return Err(Error::StoredType { label: self.label, group, dtype });
        }
        let mut source = Cow::Borrowed(self.wgsl);
        for &(group, dtype) in &self.types {
            let (lane, word) = LANES
                .into_iter()
                .find(|(lane, _)| source.contains(&format!("alias {group} = {lane};")))
                .ok_or(Error::StoredType { label: self.label, group, dtype })?;
            if dtype.is_half() {
                source = swapped(&source, group, dtype, lane, word).into();
            }
        }
        if self.types.iter().any(|(_, dtype)| dtype.is_half()) {
            source = format!("{}\n{}\n", source.replace("alias V = f32;", "alias V = vec2f;"), conversions()).into();
        }
        Ok(source)
    }
}

/// `source` with the group stored in 16 bits.
fn swapped(source: &str, group: &str, dtype: DType, lane: &str, word: &str) -> String {
    let name = group.to_ascii_lowercase();
    let format = if dtype == DType::F16 { "f16" } else { "bf16" };
    let (load, store) = match word {
        "vec2u" => (
            format!("vec4f(unpack_{format}(v.x), unpack_{format}(v.y))"),
            format!("vec2u(pack_{format}(v.xy), pack_{format}(v.zw))"),
        ),
        _ => (format!("unpack_{format}(v)"), format!("pack_{format}(v)")),
    };
    let load_head = format!("fn load_{name}(v: {group}) -> {lane} {{ return ");
    let store_head = format!("fn store_{name}(v: {lane}) -> {group} {{ return ");
    source
        .replace(&format!("alias {group} = {lane};"), &format!("alias {group} = {word};"))
        .replace(&format!("{load_head}v; }}"), &format!("{load_head}{load}; }}"))
        .replace(&format!("{store_head}v; }}"), &format!("{store_head}{store}; }}"))
}

#[cfg(test)]
mod tests;
