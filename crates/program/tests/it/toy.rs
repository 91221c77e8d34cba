//! Kernels for these tests, written as a user writes them: exact, small, some of them broken on purpose.

use brisk_program::kernels::{
    Adapter, Arg, DType, Dispatch, Error, Kernel, Number, Rule, Signature, StepValue, TwinArgs, bytemuck, fold_workgroups,
};

/// `y = (3 a + salt) ^ b` over u32, using scratch, which the first dispatch writes and the second reads.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mix {
    pub(crate) n: usize,
    pub(crate) salt: u32,
}

const MIX: &str = "
struct Params { salt: u32, pad0: u32, pad1: u32, pad2: u32 }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x0: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn scale(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] = 3u * x0[id.x] + params.salt; }
}
";
const MIX_XOR: &str = "
@group(0) @binding(0) var<storage, read> x0: array<u32>;
@group(0) @binding(1) var<storage, read> x1: array<u32>;
@group(0) @binding(2) var<storage, read_write> y: array<u32>;
@compute @workgroup_size(64)
fn xor(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&y) { y[id.x] = x0[id.x] ^ x1[id.x]; }
}
";

impl Kernel for Mix {
    fn signature(&self) -> Signature {
        let Self { n, .. } = *self;
        let (a, b) = (Arg::read("a", DType::U32, n), Arg::read("b", DType::U32, n));
        Signature::new("mix", [a, b, Arg::write("y", DType::U32, n), Arg::scratch("scaled", DType::U32, n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let workgroups = fold_workgroups(self.name(), self.n.div_ceil(64))?;
        let params = bytemuck::cast_slice(&[self.salt, 0, 0, 0]).to_vec();
        let scale = Dispatch::new("test.mix", MIX, workgroups).entry("scale");
        let xor = Dispatch::new("test.mix", MIX_XOR, workgroups).entry("xor");
        Ok(vec![scale.bind_declared(params, vec![0], vec![3]), xor.bind_declared(vec![], vec![3, 1], vec![2])])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (a, b) = (args.read::<u32>("a"), args.read::<u32>("b"));
        let (y, scaled) = (args.write::<u32>("y"), args.write::<u32>("scaled"));
        for (scaled, a) in scaled.iter_mut().zip(a) {
            *scaled = a.wrapping_mul(3).wrapping_add(self.salt);
        }
        for ((y, scaled), b) in y.iter_mut().zip(scaled).zip(b) {
            *y = *scaled ^ b;
        }
    }
}

/// `x = 5 x + 1` over u32, in place.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bump {
    pub(crate) n: usize,
}

const BUMP: &str = "
@group(0) @binding(0) var<storage, read_write> x: array<u32>;
@compute @workgroup_size(64)
fn bump(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&x) { x[id.x] = 5u * x[id.x] + 1u; }
}
";

impl Kernel for Bump {
    fn signature(&self) -> Signature {
        Signature::new("bump", [Arg::read_write("x", DType::U32, self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let workgroups = fold_workgroups(self.name(), self.n.div_ceil(64))?;
        Ok(vec![bump("test.bump", BUMP, workgroups)])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        args.write::<u32>("x").iter_mut().for_each(|x| *x = x.wrapping_mul(5).wrapping_add(1));
    }
}

/// A kernel over one in-place argument `x` that is broken in one way.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Broken {
    /// The twin panics, with its buffer half written.
    Panics,
    /// The WGSL does not parse.
    Syntax,
    /// The entry point is missing.
    NoEntry,
    /// The WGSL has one binding more than the dispatch.
    Bindings,
    /// More workgroups than any adapter dispatches.
    Workgroups,
    /// An argument comes after scratch.
    ScratchFirst,
    /// An argument has no elements.
    Nothing,
    /// An argument whose sizes overflow when they are multiplied.
    Overflow,
    /// Its own check fails.
    Refuses,
}

pub(crate) const BROKEN_LEN: usize = 64;

impl Kernel for Broken {
    fn signature(&self) -> Signature {
        let x = Arg::read_write("x", DType::U32, BROKEN_LEN);
        let args = match self {
            Self::ScratchFirst => vec![Arg::scratch("work", DType::U32, 8), x],
            Self::Nothing => vec![Arg { len: 0, ..x }],
            Self::Overflow => vec![Arg::read_write("x", DType::U32, [usize::MAX, 2])],
            _ => vec![x],
        };
        Signature::new("broken", args)
    }

    fn check(&self) -> Result<(), Error> {
        match self {
            Self::Refuses => Err(Error::Size { kernel: self.name(), size: "n", found: 7, expected: "an even number" }),
            _ => Ok(()),
        }
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![match self {
            Self::Syntax => bump("test.broken", "fn main( {", [1, 1, 1]),
            Self::NoEntry => bump("test.broken", BUMP, [1, 1, 1]).entry("elsewhere"),
            Self::Bindings => bump("test.broken", MIX_XOR, [1, 1, 1]).entry("xor"),
            Self::Workgroups => bump("test.broken", BUMP, [1, 70_000, 1]),
            _ => bump("test.broken", BUMP, [1, 1, 1]),
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let x = args.write::<u32>("x");
        x[0] = 99;
        if matches!(self, Self::Panics) {
            panic!("a twin that panics");
        }
    }
}

fn bump(label: &'static str, wgsl: &'static str, workgroups: [u32; 3]) -> Dispatch {
    Dispatch::new(label, wgsl, workgroups).entry("bump").bind_declared(vec![], vec![], vec![0])
}

/// Gradient descent with momentum 0.9.
#[derive(Debug, Clone)]
pub(crate) struct Descent;

impl Rule<1, 1, 2> for Descent {
    fn values(&self) -> [StepValue; 1] {
        [StepValue::Rate]
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate]: [N; 1], [grad]: [N; 1], [param, momentum]: [N; 2]) -> [N; 2] {
        let momentum = momentum * 0.9 + grad;
        [param - rate * momentum, momentum]
    }
}
