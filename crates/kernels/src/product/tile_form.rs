//! How the main loops store their tiles and add products.

use super::form::{Form, Reads};
use crate::adapter::adapter::{Adapter, AdapterKind};
use crate::adapter::tiles::Tiles;
use crate::dtype::DType;

/// The number of products that are added in f16 before their sum is added in f32: those of a tile. `main_tiled.wgsl` explains the
/// number.
const F16_SUM_LEN: usize = 16;

/// The types and constants of the tiles of such a module.
#[derive(Debug)]
pub(crate) struct TileForm {
    pub(crate) constants: Vec<(&'static str, f64)>,
    pub(crate) types: Vec<(&'static str, DType)>,
}

impl TileForm {
    /// Those of `form`, with operands stored as `operands`.
    pub(crate) fn of(form: &Form, reads: Reads, adapter: &Adapter, operands: [DType; 2]) -> Self {
        match form {
            Form::Tiled(tiles) if reads == Reads::Elements => Self { constants: tiles.constants(), types: Vec::new() },
            Form::Tiled(tiles) => Self::new(adapter, operands, *tiles),
            Form::Coop(tiles) => Self { constants: tiles.constants(), types: Vec::new() },
            // It uses no workgroup memory, so it has no depth.
            Form::Direct(tiles) => {
                let constants = tiles.constants().into_iter().filter(|(name, _)| *name != "DEPTH").collect();
                Self { constants, types: Vec::new() }
            }
            Form::Narrow | Form::Thin => Self { constants: Vec::new(), types: Vec::new() },
        }
    }

    /// The form for two operands with `tiles`: in f16 if both are and the device supports the type, which takes half the memory
    /// and so may be deeper.
    fn new(adapter: &Adapter, operands: [DType; 2], tiles: Tiles) -> Self {
        let is_f16 = operands == [DType::F16; 2] && adapter.has_f16();
        match adapter.f16_sum_len().filter(|_| is_f16) {
            Some(depth) => {
                let mut constants = Tiles { depth, ..tiles }.constants();
                constants.push(("BY_TILE", 1.0));
                Self { constants, types: vec![("TILE", DType::F16), ("SUM", DType::F16)] }
            }
            None => Self { constants: tiles.constants(), types: is_f16.then_some(("TILE", DType::F16)).into_iter().collect() },
        }
    }
}

impl Adapter {
    /// How many products of two f16 operands are added in f16 before their sum is added in f32, for a matrix product, convolution
    /// or gradient with tiles of vectors, if [`f16_accumulation`](Self::f16_accumulation) allows it, on hardware with
    /// [`wgpu::Features::SHADER_F16`]. `None` if all are added in f32.
    pub fn f16_sum_len(&self) -> Option<usize> {
        let adds_in_f16 = self.f16_accumulation && self.kind == AdapterKind::Hardware && self.has_f16();
        adds_in_f16.then_some(F16_SUM_LEN)
    }
}
