//! Chooses the form that computes a product on a GPU: for matrix products, batches of them, convolutions and their gradients.
//!
//! First the family, unless [`Adapter::matmul_family`] is set:
//!
//! | adapter | columns | family |
//! | --- | --- | --- |
//! | hardware with cooperative matrices | more than 8, or of a convolution | [`Coop`](MatmulFamily::Coop) |
//! | other hardware | more than 8, or of a convolution | [`Tiled`](MatmulFamily::Tiled) |
//! | hardware | up to 8 | [`Direct`](MatmulFamily::Direct) |
//! | software | any | `Direct` |
//!
//! Then the form, by the first line that applies:
//!
//! | family | product | form |
//! | --- | --- | --- |
//! | `Coop` | operands in f16, sizes that are multiples of the matrices', and room in workgroup memory | `Form::Coop`, `main_coop.wgsl` |
//! | `Direct` | a matrix product of up to 8 columns | `Form::Narrow`, `matmul_narrow.wgsl` |
//! | any | the same, if a word of the result spans two rows | `Form::Narrow` |
//! | `Direct` | a matrix product of which only b and the result can be accessed as vectors | `Form::Thin`, `matmul_thin.wgsl` |
//! | `Tiled`, `Coop` | the same, of up to 16 rows or K indices | `Form::Thin` |
//! | `Tiled`, `Coop` | all others | `Form::Tiled`, `main_tiled.wgsl` |
//! | `Direct` | all others | `Form::Direct`, `main_direct.wgsl` |
//!
//! `Form::Tiled` and `Form::Direct` read vectors if the sizes allow it, else single elements.

use super::coop_tiles::{CoopTiles, Gathered};
use super::epilogue::Results;
use crate::adapter::adapter::{Adapter, AdapterKind};
use crate::adapter::matmul_family::MatmulFamily;
use crate::adapter::tiles::Tiles;
use crate::dtype::DType;
use crate::product::cut::Cut;
use crate::shader::module::{Part, part};

/// The maximum number of columns for which invocations are assigned along the rows.
const NARROW_COLS: usize = 8;

/// The maximum number of rows, or of K indices, of a thin product.
const THIN: usize = 16;

/// Stores four results as a vector, or as single elements.
const STORE_FOUR: Part = part!("store_four.wgsl");
pub(crate) const STORE_FOUR_ANY: Part = part!("store_four_any.wgsl");

/// A form, and how it is divided into workgroups.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Form {
    Coop(CoopTiles),
    Tiled(Tiles),
    Direct(Tiles),
    Narrow,
    Thin,
}

/// How operands are read and results are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Four elements at once.
    Vectors,
    /// One at a time.
    Elements,
}

/// The properties of a product on which the choice of a form depends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Problem {
    /// Rows and columns of the result of a slice.
    pub(crate) size: [usize; 2],
    /// The K dimension.
    pub(crate) depth: usize,
    /// Pairs of a batch, or parts of K.
    pub(crate) n_slices: usize,
    /// How the operands are stored.
    pub(crate) operands: [DType; 2],
    /// How tiled and direct forms read.
    pub(crate) reads: Reads,
    /// Sizes that must be multiples of those of cooperative matrices for these to be used.
    pub(crate) whole: [usize; 3],
    pub(crate) kind: Kind,
}

/// The operands of a product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Matmul {
        /// Whether a word of the result would be written by two invocations of a form other than the narrow one.
        splits_words: bool,
        /// Whether b is not transposed and has whole vectors, as the result does.
        has_thin: bool,
    },
    Batch,
    /// An operand that is gathered from images.
    Convolution(Gathered),
}

impl MatmulFamily {
    /// The family for a product with `n_cols` columns on `adapter`; `usize::MAX` for convolutions: tiles on hardware.
    pub fn choose(adapter: &Adapter, n_cols: usize) -> Self {
        match (adapter.matmul_family, adapter.kind) {
            (Some(family), _) => family,
            (None, AdapterKind::Hardware) if n_cols > NARROW_COLS && Self::Coop.runs_on(adapter) => Self::Coop,
            (None, AdapterKind::Hardware) if n_cols > NARROW_COLS => Self::Tiled,
            (None, _) => Self::Direct,
        }
    }
}

impl Problem {
    /// The form of `family` for it.
    pub(crate) fn form(&self, family: MatmulFamily, adapter: &Adapter) -> Form {
        let [n_rows, n_cols] = self.size;
        let is_direct = family == MatmulFamily::Direct;
        if let Some(tiles) = self.coop_tiles(family, adapter) {
            return Form::Coop(tiles);
        }
        match self.kind {
            Kind::Matmul { splits_words, .. } if n_cols <= NARROW_COLS && (is_direct || splits_words) => Form::Narrow,
            Kind::Matmul { has_thin: true, .. } if is_direct || n_rows <= THIN || self.depth <= THIN => Form::Thin,
            _ => match family {
                MatmulFamily::Direct => Form::Direct(direct_tiles(n_cols)),
                MatmulFamily::TiledBy(tiles) => Form::Tiled(tiles),
                MatmulFamily::Tiled | MatmulFamily::Coop => {
                    Form::Tiled(self.cut(adapter).choose(adapter, n_rows, n_cols, self.n_slices))
                }
            },
        }
    }

    /// How `form`, one that has loaders, holds results when they are stored.
    pub(crate) const fn results(&self, form: &Form) -> Results {
        match (form, self.reads) {
            (Form::Coop(_), _) | (_, Reads::Vectors) => Results::Four,
            (_, Reads::Elements) => Results::Two,
        }
    }

    fn coop_tiles(&self, family: MatmulFamily, adapter: &Adapter) -> Option<CoopTiles> {
        let gathered = match self.kind {
            Kind::Matmul { .. } | Kind::Batch => None,
            Kind::Convolution(gathered) => Some(gathered),
        };
        let shape = adapter.coop.filter(|_| family == MatmulFamily::Coop && self.operands == [DType::F16; 2])?;
        let is_whole = self.whole.iter().all(|size| size.is_multiple_of(shape.size()));
        // The last pixels of a gradient of weights form a whole matrix.
        let is_deep = self.kind != Kind::Convolution(Gathered::Columns) || self.depth >= shape.size();
        CoopTiles::choose(shape, adapter, gathered, self.size, self.n_slices).filter(|_| is_whole && is_deep)
    }

    /// How many sums an invocation keeps, depending on what else it keeps in registers: source pixels and single elements.
    fn cut(&self, adapter: &Adapter) -> Cut {
        let reads_pixels = self.kind == Kind::Convolution(Gathered::Rows);
        match self.reads {
            Reads::Vectors => Cut::of(adapter, self.operands, reads_pixels),
            Reads::Elements => Cut::Long,
        }
    }
}

/// The workgroup of the direct form: 8 invocations, the number of floats in a processor's vector, along the columns as far as
/// there are enough.
fn direct_tiles(n_cols: usize) -> Tiles {
    let invocation_cols = n_cols.div_ceil(4).next_power_of_two().min(8);
    let col_blocks = if n_cols > 4 * invocation_cols { 2 } else { 1 };
    Tiles { invocations: [8 / invocation_cols, invocation_cols], blocks: [2, col_blocks], depth: 4 }
}

impl Form {
    /// Rows and columns of a workgroup's results, for forms that have loaders.
    pub(crate) fn tile(&self) -> [usize; 2] {
        match self {
            Self::Coop(tiles) => tiles.size(),
            Self::Tiled(tiles) | Self::Direct(tiles) => tiles.size(),
            Self::Narrow | Self::Thin => [1, 1],
        }
    }

    /// The parts of the main loop and of its stores, for forms that have loaders.
    pub(crate) fn main_parts(&self, reads: Reads) -> Vec<Part> {
        let main = match self {
            Self::Coop(tiles) => return [part!("main_coop.wgsl"), STORE_FOUR].into_iter().chain(tiles.parts()).collect(),
            Self::Tiled(_) => part!("main_tiled.wgsl"),
            Self::Direct(_) => part!("main_direct.wgsl"),
            Self::Narrow | Self::Thin => return Vec::new(),
        };
        let store = if reads == Reads::Vectors { STORE_FOUR } else { STORE_FOUR_ANY };
        vec![main, part!("block.wgsl"), part!("sums.wgsl"), store]
    }
}

/// The labels `crate.kernel.form` of a kernel's forms.
#[derive(Debug)]
pub(crate) struct Labels {
    coop: &'static str,
    tiled: [&'static str; 2],
    direct: [&'static str; 2],
    narrow: &'static str,
    thin: &'static str,
}

impl Labels {
    pub(crate) const fn of(&self, form: &Form, reads: Reads) -> &'static str {
        match form {
            Form::Coop(_) => self.coop,
            Form::Tiled(_) => self.tiled[reads as usize],
            Form::Direct(_) => self.direct[reads as usize],
            Form::Narrow => self.narrow,
            Form::Thin => self.thin,
        }
    }
}

macro_rules! labels {
    ($kernel:literal) => {
        $crate::product::form::Labels {
            coop: concat!("kernels.", $kernel, ".coop"),
            tiled: [concat!("kernels.", $kernel, ".tiled"), concat!("kernels.", $kernel, ".tiled_any")],
            direct: [concat!("kernels.", $kernel, ".direct"), concat!("kernels.", $kernel, ".direct_any")],
            narrow: concat!("kernels.", $kernel, ".narrow"),
            thin: concat!("kernels.", $kernel, ".thin"),
        }
    };
}

pub(crate) const MATMUL: Labels = labels!("matmul");
pub(crate) const BATCHED_MATMUL: Labels = labels!("batched_matmul");
pub(crate) const CONV2D: Labels = labels!("conv2d");
pub(crate) const CONV2D_GRAD_INPUT: Labels = labels!("conv2d_grad_input");
pub(crate) const CONV2D_GRAD_WEIGHT: Labels = labels!("conv2d_grad_weight");
