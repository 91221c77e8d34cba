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
//! A file for one float at a time names what a lane computes in, `V`, and the bits of that, `U`:
//!
//! ```wgsl
//! alias V = f32;
//! alias U = u32;
//! alias X = V;
//! fn load_x(v: X) -> V { return v; }
//! ```
//!
//! With a type of 16 bits among the dispatch's, `V` is `vec2f` for all groups, and the groups of 16 bits are `u32`: lanes compute two elements. So all but
//! those must have an even number of elements; the second half of a last word is padding, which anything may be written to. Constructors and comparisons say
//! `V(0.0)` rather than `0.0`.
//!
//! Where lanes read single elements from anywhere, or write several in a row, it goes by the element's index in the binding `x` of the group's name:
//!
//! ```wgsl
//! alias X = f32;
//! fn load_x(i: u32) -> f32 { return x[i]; }
//! fn store_x(i: u32, v: vec2f) { x[i] = v.x; if i + 1u < arrayLength(&x) { x[i + 1u] = v.y; } }
//! ```
//!
//! Then `X` is `u32` as well, of any number of elements, and what is stored in twos starts at an even index.

use std::borrow::Cow;

use crate::{DType, Dispatch, Error};

/// The functions that the forms for 16 bits call: what `cast.wgsl` has ahead of its constants.
fn conversions() -> &'static str {
    let cast = include_str!("wgsl/cast.wgsl");
    cast.split_once("\noverride ").map_or(cast, |(functions, _)| functions)
}

/// What a group may be in f32.
const LANES: [&str; 4] = ["vec4f", "vec2f", "V", "f32"];

impl Dispatch {
    /// The module as a driver is given it: [`wgsl`](Self::wgsl), with the lines that say how floats are stored swapped for those of its
    /// [`types`](Self::types).
    ///
    /// # Errors
    /// [`Error::StoredType`] if there is no such group, or its type is none that floats are stored in.
    pub fn source(&self) -> Result<Cow<'static, str>, Error> {
        let mut source = Cow::Borrowed(self.wgsl);
        for &(group, dtype) in &self.types {
            let lane = LANES.into_iter().find(|lane| source.contains(&format!("alias {group} = {lane};")));
            let lane = lane.filter(|_| dtype.is_float()).ok_or(Error::StoredType { label: self.label, group, dtype })?;
            if dtype.is_half() {
                source = swaps(group, dtype, lane).iter().fold(source, |source, [f32, half]| source.replace(f32, half).into());
            }
        }
        if self.types.iter().any(|(_, dtype)| dtype.is_half()) {
            let source = source.replace("alias V = f32;", "alias V = vec2f;").replace("alias U = u32;", "alias U = vec2u;");
            return Ok(format!("{source}\n{}\n", conversions()).into());
        }
        Ok(source)
    }
}

/// The lines of a group in f32, and in 16 bits.
fn swaps(group: &str, dtype: DType, lane: &str) -> [[String; 2]; 3] {
    let x = group.to_ascii_lowercase();
    let format = if dtype == DType::F16 { "f16" } else { "bf16" };
    let word = if lane == "vec4f" { "vec2u" } else { "u32" };
    let [load_head, store_head] = match lane {
        "f32" => [format!("fn load_{x}(i: u32) -> f32"), format!("fn store_{x}(i: u32, v: vec2f)")],
        _ => [format!("fn load_{x}(v: {group}) -> {lane}"), format!("fn store_{x}(v: {lane}) -> {group}")],
    };
    let [load, store] = match lane {
        "f32" => [
            [
                format!("return {x}[i];"),
                format!("let v = unpack_{format}({x}[i / 2u]); return select(v.x, v.y, (i & 1u) == 1u);"),
            ],
            [
                format!("{x}[i] = v.x; if i + 1u < arrayLength(&{x}) {{ {x}[i + 1u] = v.y; }}"),
                format!("{x}[i / 2u] = pack_{format}(v);"),
            ],
        ],
        "vec4f" => [
            ["return v;".into(), format!("return vec4f(unpack_{format}(v.x), unpack_{format}(v.y));")],
            ["return v;".into(), format!("return vec2u(pack_{format}(v.xy), pack_{format}(v.zw));")],
        ],
        _ => [
            ["return v;".into(), format!("return unpack_{format}(v);")],
            ["return v;".into(), format!("return pack_{format}(v);")],
        ],
    };
    [
        [lane, word].map(|of| format!("alias {group} = {of};")),
        load.map(|body| format!("{load_head} {{ {body} }}")),
        store.map(|body| format!("{store_head} {{ {body} }}")),
    ]
}

#[cfg(test)]
mod tests;
