//! Parts that define how a module's buffers of floats are stored.
//!
//! A module computes in `f32`, over buffers of f32, f16 or bf16. For each group `X` of buffers with the same storage type, its
//! [`Template`] says how the module accesses them, and a part defines the type `X`, of which the bindings are arrays, and
//! functions `load_x` and `store_x`. Two 16-bit floats are one `u32`, converted by integer arithmetic, so that no device needs
//! `SHADER_F16`.
//!
//! `pack2x16float` is not used, since it leaves overflow undefined, and WGSL has no bf16. A kernel without a 16-bit form of its
//! own runs between casts. Where a row of a product or convolution ends within a word, its result is f32 first and then cast,
//! since two invocations cannot write one word.

use std::fmt::Write as _;

use crate::adapter::adapter::Adapter;
use crate::dtype::DType;
use crate::expr::wgsl::VectorWidth;
use crate::shader::module::{Module, Part, part};

/// The functions by which parts convert floats that are packed in 32-bit words.
pub(crate) const CONVERSIONS: Part = part!("conversions.wgsl");

/// A module without the types of its buffers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Template {
    parts: &'static [Part],
    groups: &'static [Group],
    extensions: &'static [&'static str],
}

/// Buffers of floats with the same storage type, and how a module accesses them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group {
    name: &'static str,
    elements: Elements,
    loads: bool,
    stores: bool,
    by_device: bool,
    fetches: bool,
    optional: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Elements {
    Four,
    Lane,
    One,
    Register,
}

impl Group {
    const fn new(name: &'static str, elements: Elements) -> Self {
        Self { name, elements, loads: false, stores: false, by_device: false, fetches: false, optional: false }
    }

    /// Four at a time: the buffer is `array<X>`, and the functions are `load_x(v: X) -> vec4f` and `store_x(v: vec4f) -> X`.
    pub(crate) const fn four(name: &'static str) -> Self {
        Self::new(name, Elements::Four)
    }

    /// As many as the module computes at a time, one or two: `load_x(v: X) -> V` and `store_x(v: V) -> X`, with the types of
    /// [`VectorWidth::part`]. If all such groups are f32, `V` is `f32`. Otherwise it is `vec2f`, and the buffers have an even
    /// number of elements, or padding after the last.
    pub(crate) const fn lane(name: &'static str) -> Self {
        Self::new(name, Elements::Lane)
    }

    /// Single elements, by their index in the binding `x`: `load_x(i: u32) -> f32`, and `store_x(i: u32, v: vec2f, n: u32)`,
    /// which stores `n` elements, 1 or 2, starting at the even index `i`. In 16 bits, it stores a single one only at the end of
    /// the buffer, where padding follows.
    pub(crate) const fn one(name: &'static str) -> Self {
        Self::new(name, Elements::One)
    }

    /// Four in registers or workgroup memory, as `vec4f` or `vec4<f16>`, without functions.
    pub(crate) const fn register(name: &'static str) -> Self {
        Self::new(name, Elements::Register)
    }

    /// The same with the load function.
    pub(crate) const fn loads(self) -> Self {
        Self { loads: true, ..self }
    }

    /// The same with the store function.
    pub(crate) const fn stores(self) -> Self {
        Self { stores: true, ..self }
    }

    /// The same, with f16 converted by the device if it has [`wgpu::Features::SHADER_F16`]. The device may flush subnormals, so
    /// this is for operands of sums, not for results.
    pub(crate) const fn by_device(self) -> Self {
        Self { by_device: true, ..self }
    }

    /// The same, of fours or single elements, with a function that loads four elements of a line,
    /// `fetch_x(i: u32, n: u32) -> vec4f`: those starting at `i`, with 0 for the `n`-th and later ones, which are not read; of
    /// fours, `i` is a multiple of 4 and `n` is 0 or at least 4. Also adds
    /// `lines_of_x(i: u32, stride: u32, n_lines: u32, n: u32) -> Block`, the same for four lines `stride` apart, of which the
    /// first `n_lines` exist.
    pub(crate) const fn fetches(self) -> Self {
        Self { loads: true, fetches: true, ..self }
    }

    /// The same, left out of modules for which no type of it is given, since they do not bind the buffer.
    pub(crate) const fn optional(self) -> Self {
        Self { optional: true, ..self }
    }
}

impl Template {
    /// A module of `parts` over `groups`.
    pub(crate) const fn new(parts: &'static [Part], groups: &'static [Group]) -> Self {
        Self { parts, groups, extensions: &[] }
    }

    /// The same with `enable` for each of `extensions`.
    pub(crate) const fn enabling(self, extensions: &'static [&'static str]) -> Self {
        Self { extensions, ..self }
    }

    /// The module with its groups stored as `types` says, and as f32 for groups without a type.
    pub(crate) fn module(&self, types: &[(&'static str, DType)]) -> Module {
        self.with_types(types, false)
    }

    /// The same for `adapter`, which converts f16 itself if it can and the group allows it.
    pub(crate) fn module_on(&self, adapter: &Adapter, types: &[(&'static str, DType)]) -> Module {
        self.with_types(types, adapter.has_f16())
    }

    fn with_types(&self, types: &[(&'static str, DType)], has_f16: bool) -> Module {
        let is_unknown =
            |(name, dtype): &&(_, DType)| *dtype != DType::F32 && self.groups.iter().all(|group| group.name != *name);
        let unknown = types.iter().find(is_unknown);
        assert!(unknown.is_none(), "{unknown:?} is not a group of the module");
        let dtype = |group: &Group| types.iter().find(|(name, _)| *name == group.name).map_or(DType::F32, |(_, dtype)| *dtype);
        let is_native =
            |group: &Group| dtype(group) == DType::F16 && (group.elements == Elements::Register || has_f16 && group.by_device);
        let mut text = String::new();
        let lanes: Vec<DType> = self.groups.iter().filter(|group| group.elements == Elements::Lane).map(dtype).collect();
        if !lanes.is_empty() {
            let width = if lanes.iter().any(|dtype| dtype.is_half()) { VectorWidth::Two } else { VectorWidth::One };
            text.push_str(width.part().text());
        }
        let is_bound = |group: &&Group| !group.optional || types.iter().any(|(name, _)| *name == group.name);
        for group in self.groups.iter().filter(is_bound) {
            group.declare(&mut text, dtype(group), is_native(group));
        }
        let stored = (!self.groups.is_empty()).then(|| Part::own("stored types", text));
        let is_packed = self.groups.iter().any(|group| dtype(group).is_half() && !is_native(group));
        let parts = stored.into_iter().chain(is_packed.then_some(CONVERSIONS)).chain(self.parts.iter().cloned());
        let f16 = self.groups.iter().any(is_native).then_some("f16");
        f16.into_iter()
            .chain(self.extensions.iter().copied())
            .fold(Module::new(parts), Module::enabling)
            .storing(self.groups.iter().map(|group| group.name))
    }
}

impl Group {
    /// Writes the type and the functions of a group that is stored as `dtype`; `is_native` if that is the device's own f16.
    fn declare(&self, text: &mut String, dtype: DType, is_native: bool) {
        let Self { name, elements, .. } = *self;
        let x = name.to_ascii_lowercase();
        let format = if dtype == DType::F16 { "f16" } else { "bf16" };
        let is_packed = dtype.is_half() && !is_native;
        let computed = match elements {
            Elements::Four | Elements::Register => "vec4f",
            Elements::Lane => "V",
            Elements::One => "f32",
        };
        let (stored, load, store) = match elements {
            Elements::Four | Elements::Register if is_packed => (
                "vec2u",
                format!("return vec4f(unpack_{format}(v.x), unpack_{format}(v.y));"),
                format!("return vec2u(pack_{format}(v.xy), pack_{format}(v.zw));"),
            ),
            Elements::Lane if is_packed => ("u32", format!("return unpack_{format}(v);"), format!("return pack_{format}(v);")),
            Elements::One if is_packed => (
                "u32",
                format!("let v = unpack_{format}({x}[i / 2u]); return select(v.x, v.y, (i & 1u) == 1u);"),
                format!("{x}[i / 2u] = pack_{format}(v);"),
            ),
            Elements::One => ("f32", format!("return {x}[i];"), format!("{x}[i] = v.x; if n > 1u {{ {x}[i + 1u] = v.y; }}")),
            _ if is_native => ("vec4<f16>", "return vec4f(v);".to_owned(), format!("return {name}(v);")),
            _ => (computed, "return v;".to_owned(), "return v;".to_owned()),
        };
        let _ = writeln!(text, "alias {name} = {stored};");
        let by_index = elements == Elements::One;
        if self.loads {
            let arg = if by_index { "i: u32".to_owned() } else { format!("v: {name}") };
            let _ = writeln!(text, "fn load_{x}({arg}) -> {computed} {{ {load} }}");
        }
        if self.stores {
            let head = if by_index { "(i: u32, v: vec2f, n: u32)".to_owned() } else { format!("(v: {computed}) -> {name}") };
            let _ = writeln!(text, "fn store_{x}{head} {{ {store} }}");
        }
        if self.fetches {
            text.push_str(&if by_index { fetch_ones(&x) } else { fetch_four(&x) });
            text.push_str(&lines_of(&x));
        }
    }
}

/// The function that fetches four elements of a buffer `x` of fours.
fn fetch_four(x: &str) -> String {
    format!(
        "fn fetch_{x}(i: u32, n: u32) -> vec4f {{
    return select(vec4f(), load_{x}({x}[select(0u, i / 4u, n > 0u)]), n > 0u);
}}
"
    )
}

/// The same for a buffer of single elements.
fn fetch_ones(x: &str) -> String {
    format!(
        "fn fetch_{x}(i: u32, n: u32) -> vec4f {{
    let exist = vec4u(0u, 1u, 2u, 3u) < vec4u(n);
    let at = select(vec4u(), vec4u(i) + vec4u(0u, 1u, 2u, 3u), exist);
    return select(vec4f(), vec4f(load_{x}(at.x), load_{x}(at.y), load_{x}(at.z), load_{x}(at.w)), exist);
}}
"
    )
}

/// The function that fetches four lines of a buffer `x`.
fn lines_of(x: &str) -> String {
    format!(
        "fn lines_of_{x}(i: u32, stride: u32, n_lines: u32, n: u32) -> Block {{
    return Block(
        TILE(fetch_{x}(i, select(0u, n, n_lines > 0u))),
        TILE(fetch_{x}(i + stride, select(0u, n, n_lines > 1u))),
        TILE(fetch_{x}(i + 2u * stride, select(0u, n, n_lines > 2u))),
        TILE(fetch_{x}(i + 3u * stride, select(0u, n, n_lines > 3u))),
    );
}}
"
    )
}

#[cfg(test)]
mod tests;
