//! WGSL modules as lists of parts.
//!
//! The parts of a module are declarations of arguments and parameters, which [`Dispatch::bind`](crate::Dispatch::bind) writes,
//! stored types, an epilogue, loaders and a main loop. Products, convolutions and their gradients share the main loops of
//! `product`; only what they load differs.

use std::borrow::Cow;
use std::hash::{Hash, Hasher};

use crate::arg::Arg;
use crate::error::Error;
use crate::shader::binding::{Binding, Declarations};
use crate::shader::param::Param;

/// A piece of a WGSL module: a file, or text generated for one kernel. Declarations at module scope may be in any order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    pub(crate) name: Cow<'static, str>,
    pub(crate) text: Cow<'static, str>,
    /// Whether every loop terminates, so that no guards are needed.
    pub(crate) loops_end: bool,
}

impl Part {
    /// A part with these declarations. `name` is the file's name or describes the part.
    pub fn new(name: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) -> Self {
        Self { name: name.into(), text: text.into(), loops_end: false }
    }

    /// A part of this crate, whose loops all terminate.
    pub(crate) fn own(name: impl Into<Cow<'static, str>>, text: impl Into<Cow<'static, str>>) -> Self {
        Self { loops_end: true, ..Self::new(name, text) }
    }

    /// The file's name, or a description of the part.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its declarations.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A WGSL module as a list of parts, which are joined when it is compiled.
///
/// What several kernels share is one part of each of their modules; whatever depends on a type or an expression is a separate
/// part. A kernel whose module is a single text creates it with `From`.
///
/// # Examples
/// ```
/// use brisk_kernels::{Module, Part};
///
/// let scale = Part::new("scale", "const SCALE = 2.0;");
/// let module = Module::from("fn scaled(v: f32) -> f32 { return SCALE * v; }").with(scale);
/// assert!(module.source().contains("const SCALE"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Module {
    extensions: Vec<&'static str>,
    parts: Vec<Part>,
    /// Types that parts declare, each for the buffer of the same name in lower case.
    stored_types: Vec<&'static str>,
    declarations: Declarations,
}

/// The name of the part that declares the bindings.
const ARGUMENTS: &str = "arguments";

impl Module {
    /// A module of `parts`.
    pub fn new(parts: impl IntoIterator<Item = Part>) -> Self {
        Self { parts: parts.into_iter().collect(), ..Self::default() }
    }

    /// Adds a part.
    pub fn with(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// Adds parts.
    pub fn with_all(mut self, parts: impl IntoIterator<Item = Part>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// Puts `enable extension;` before the parts, where WGSL requires directives.
    pub fn enabling(mut self, extension: &'static str) -> Self {
        if !self.extensions.contains(&extension) {
            self.extensions.push(extension);
        }
        self
    }

    /// Stores buffers as the types `names`, which one of the parts declares.
    pub(crate) fn storing(mut self, names: impl IntoIterator<Item = &'static str>) -> Self {
        self.stored_types.extend(names);
        self
    }

    /// Declares a field of the uniform struct and appends its value to the struct's bytes.
    pub(crate) fn declare_field(&mut self, name: &'static str, value: Param, bytes: &mut Vec<u8>) {
        self.declarations.fields.push(name, value, bytes);
        self.declare();
    }

    /// Declares arguments for reading and writing, as arrays of the type that a part declares for them (`X` for `x`), if there is
    /// one. Returns their indices.
    pub(crate) fn declare_args(
        &mut self,
        label: &'static str,
        args: &[Arg],
        bindings: [Vec<Binding>; 2],
    ) -> Result<[Vec<usize>; 2], Error> {
        let stored_type = |name: &str| self.stored_types.iter().find(|stored| stored.eq_ignore_ascii_case(name)).copied();
        let indices = self.declarations.bind(label, stored_type, args, bindings)?;
        self.declare();
        Ok(indices)
    }

    /// Creates the part with the declarations, once arguments are bound.
    fn declare(&mut self) {
        if self.declarations.is_bound() {
            self.parts.retain(|part| part.name != ARGUMENTS);
            self.parts.insert(0, Part::own(ARGUMENTS, self.declarations.text()));
        }
    }

    /// Its parts, in the order in which they are joined.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Whether wgpu guards the loops of the module, because one of its parts is not [without guards](Part::without_loop_guards).
    pub fn has_loop_guards(&self) -> bool {
        self.parts.iter().any(|part| !part.loops_end)
    }

    /// The WGSL: directives, then all parts, each under a comment with its name.
    pub fn source(&self) -> String {
        let enabled = self.extensions.iter().map(|extension| format!("enable {extension};\n"));
        let parts = self.parts.iter().map(|part| format!("// part: {}\n{}\n", part.name, part.text.trim_end()));
        enabled.chain(parts).collect()
    }
}

/// Equal modules have as many parts of the same names and lengths; hashing the text too would cost more than it distinguishes.
impl Hash for Module {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.extensions.hash(state);
        for Part { name, text, .. } in &self.parts {
            (name, text.len()).hash(state);
        }
    }
}

impl From<&'static str> for Module {
    fn from(text: &'static str) -> Self {
        Self::new([Part::new("module", text)])
    }
}

impl From<String> for Module {
    fn from(text: String) -> Self {
        Self::new([Part::new("module", text)])
    }
}

/// The [`Part`] for a file of this crate, named from the caller's folder. Its loops end, whatever buffers and parameters contain.
macro_rules! part {
    ($file:literal) => {
        $crate::Part {
            name: std::borrow::Cow::Borrowed($file),
            text: std::borrow::Cow::Borrowed(include_str!($file)),
            loops_end: true,
        }
    };
}
pub(crate) use part;

/// The [`Module`] of the parts for these files, named from the caller's folder.
macro_rules! module {
    ($($file:literal),+ $(,)?) => {
        $crate::Module::new([$($crate::shader::module::part!($file)),+])
    };
}
pub(crate) use module;

#[cfg(test)]
mod tests;
