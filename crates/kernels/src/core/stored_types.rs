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
//! Where a function says `vec4f(v)` or `X(v)` for `v`, the numbers may be converted by the device: if it has [`wgpu::Features::SHADER_F16`], `X` is then
//! `vec4<f16>` for f16, and the functions stay. It may flush subnormals, so this is for operands of sums, not for what is stored for others.
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
//! fn store_x(i: u32, v: vec2f, n: u32) { x[i] = v.x; if n > 1u { x[i + 1u] = v.y; } }
//! ```
//!
//! Then `X` is `u32` as well, of any number of elements. What is stored in twos starts at an even index, and `n` says how many there are; in 16 bits there is one alone
//! only at the end of the binding, beside padding.

use std::borrow::Cow;

use crate::{DType, Dispatch, Error};

/// The functions that the forms for 16 bits call: what `cast.wgsl` has ahead of its constants.
fn conversions() -> &'static str {
    let cast = include_str!("../elementwise/cast.wgsl");
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
    pub fn source(&self, features: wgpu::Features) -> Result<Cow<'static, str>, Error> {
        let mut source = Cow::Borrowed(self.wgsl);
        let has_f16 = features.contains(wgpu::Features::SHADER_F16);
        for &(group, dtype) in &self.types {
            let lane = LANES.into_iter().find(|lane| source.contains(&format!("alias {group} = {lane};")));
            let lane = lane.filter(|_| dtype.is_float()).ok_or(Error::StoredType { label: self.label, group, dtype })?;
            if has_f16 && dtype == DType::F16 && converts(&source, group) {
                let source_f16 = source.replace(&format!("alias {group} = vec4f;"), &format!("alias {group} = vec4<f16>;"));
                source = if source.contains(ENABLE_F16) { source_f16 } else { format!("{ENABLE_F16}\n{source_f16}") }.into();
            } else if dtype.is_half() {
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

const ENABLE_F16: &str = "enable f16;";

/// Whether the functions of a group leave its numbers to the device to convert.
fn converts(source: &str, group: &str) -> bool {
    let x = group.to_ascii_lowercase();
    let [load, store] =
        [format!("fn load_{x}(v: {group}) -> vec4f {{ return "), format!("fn store_{x}(v: vec4f) -> {group} {{ return ")];
    let says = |head: &str, body: &str| source.contains(&format!("{head}{body}; }}"));
    (says(&load, "vec4f(v)") || says(&store, &format!("{group}(v)"))) && !says(&load, "v") && !says(&store, "v")
}

/// The lines of a group in f32, and in 16 bits.
fn swaps(group: &str, dtype: DType, lane: &str) -> Vec<[String; 2]> {
    let x = group.to_ascii_lowercase();
    let format = if dtype == DType::F16 { "f16" } else { "bf16" };
    let word = if lane == "vec4f" { "vec2u" } else { "u32" };
    let [load_head, store_head] = match lane {
        "f32" => [format!("fn load_{x}(i: u32) -> f32"), format!("fn store_{x}(i: u32, v: vec2f, n: u32)")],
        _ => [format!("fn load_{x}(v: {group}) -> {lane}"), format!("fn store_{x}(v: {lane}) -> {group}")],
    };
    let [load, store] = match lane {
        "f32" => [
            [
                format!("return {x}[i];"),
                format!("let v = unpack_{format}({x}[i / 2u]); return select(v.x, v.y, (i & 1u) == 1u);"),
            ],
            [format!("{x}[i] = v.x; if n > 1u {{ {x}[i + 1u] = v.y; }}"), format!("{x}[i / 2u] = pack_{format}(v);")],
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
    let converted = [["return vec4f(v);".to_owned(), load[1].clone()], [format!("return {group}(v);"), store[1].clone()]];
    let [load_converted, store_converted] = converted;
    let in_braces = |head: &str, bodies: [String; 2]| bodies.map(|body| format!("{head} {{ {body} }}"));
    vec![
        [lane, word].map(|of| format!("alias {group} = {of};")),
        in_braces(&load_head, load),
        in_braces(&store_head, store),
        in_braces(&load_head, load_converted),
        in_braces(&store_head, store_converted),
    ]
}

#[cfg(test)]
mod tests;
