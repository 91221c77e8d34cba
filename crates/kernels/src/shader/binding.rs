use std::fmt::Write as _;

use crate::arg::{Arg, ArgKey, names};
use crate::dtype::DType;
use crate::error::Error;
use crate::shader::param::Fields;

/// How a dispatch binds an argument: which one, under which name, and as an array of which type.
///
/// A plain name binds the argument of that name under the same name: `"x"` is `Binding::of("x")`.
///
/// # Examples
/// ```
/// use brisk_kernels::{Arg, Binding, DType, Dispatch};
///
/// let args = [Arg::read("x", DType::F32, 8), Arg::write("y", DType::F32, 2), Arg::scratch("parts", DType::F32, 4)];
/// let add = Dispatch::new("mine.add", "fn add(i: u32) { y[i] = x[i].x + x[i].y; }", [1, 1, 1])
///     .bind(&args, [Binding::of("parts").named("x").elements("vec2f")], ["y"])?;
/// assert_eq!((add.reads, add.writes), (vec![2], vec![1]));
/// assert!(add.wgsl.source().contains("var<storage, read> x: array<vec2f>;"));
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding {
    arg: ArgKey,
    name: Option<&'static str>,
    elements: Option<&'static str>,
}

impl Binding {
    /// Binds nothing, for dispatches that only write.
    pub const NONE: [Self; 0] = [];

    /// The argument called `arg`; the first one, if several have the name.
    pub const fn of(arg: &'static str) -> Self {
        Self { arg: ArgKey::Name(arg), name: None, elements: None }
    }

    /// The argument at `index` of the kernel's list, if several have the same name.
    pub const fn at(index: usize) -> Self {
        Self { arg: ArgKey::Index(index), name: None, elements: None }
    }

    /// Calls the argument `name` in the WGSL.
    pub const fn named(self, name: &'static str) -> Self {
        Self { name: Some(name), ..self }
    }

    /// Declares the argument as `array<elements>`. By default, the element type is the one in which it is stored: `f32`, and
    /// `u32` for integers and for types of fewer than 32 bits, of which several share a word.
    pub const fn elements(self, elements: &'static str) -> Self {
        Self { elements: Some(elements), ..self }
    }

    fn find(&self, label: &'static str, args: &[Arg]) -> Result<usize, Error> {
        let found = self.arg.find(args);
        found.ok_or_else(|| Error::UnknownArg { label, found: self.arg.to_string(), expected: names(args) })
    }
}

impl From<&'static str> for Binding {
    fn from(arg: &'static str) -> Self {
        Self::of(arg)
    }
}

/// The declarations of a module for one dispatch: the uniform and the bound arguments.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Declarations {
    pub(crate) fields: Fields,
    reads: Vec<Declared>,
    writes: Vec<Declared>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Declared {
    name: &'static str,
    elements: String,
}

impl Declarations {
    /// Finds the arguments, and returns the indices of those that are read and of those that are written.
    pub(crate) fn bind(
        &mut self,
        label: &'static str,
        stored_type: impl Fn(&str) -> Option<&'static str>,
        args: &[Arg],
        bindings: [Vec<Binding>; 2],
    ) -> Result<[Vec<usize>; 2], Error> {
        let declared = |binding: &Binding, index: usize| {
            let name = binding.name.unwrap_or(args[index].name);
            let stored = || stored_type(name).unwrap_or_else(|| elements_of(args[index].dtype));
            Declared { name, elements: binding.elements.unwrap_or_else(stored).to_owned() }
        };
        let mut indices = [Vec::new(), Vec::new()];
        for ((bindings, indices), list) in bindings.iter().zip(&mut indices).zip([&mut self.reads, &mut self.writes]) {
            for binding in bindings {
                let index = binding.find(label, args)?;
                indices.push(index);
                list.push(declared(binding, index));
            }
        }
        Ok(indices)
    }

    pub(crate) fn is_bound(&self) -> bool {
        !self.reads.is_empty() || !self.writes.is_empty()
    }

    /// The WGSL: the uniform, then the arguments that are read, then those that are written.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        if !self.fields.is_empty() {
            self.fields.declare(&mut text);
            text.push_str("@group(0) @binding(0) var<uniform> params: Params;\n");
        }
        let first = usize::from(!self.fields.is_empty());
        let reads = self.reads.iter().map(|declared| ("read", declared));
        let writes = self.writes.iter().map(|declared| ("read_write", declared));
        for (i, (access, Declared { name, elements })) in reads.chain(writes).enumerate() {
            let _ = writeln!(text, "@group(0) @binding({}) var<storage, {access}> {name}: array<{elements}>;", first + i);
        }
        text
    }
}

const fn elements_of(dtype: DType) -> &'static str {
    match dtype {
        DType::F32 => "f32",
        DType::F16 | DType::Bf16 | DType::U8 | DType::U32 => "u32",
    }
}
