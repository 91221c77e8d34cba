//! How the main loops store their tiles and add products up.

use super::form::{Form, Reads};
use crate::{Adapter, AdapterKind, DType, Tiles};

/// Products that are added in f16 before their sum is added in f32: those of a tile. `main_tiled.wgsl` says why so many.
const F16_PLACES: usize = 16;

/// What a dispatch of such a module says of its tiles.
#[derive(Debug)]
pub(crate) struct TileForm {
    pub(crate) constants: Vec<(&'static str, f64)>,
    pub(crate) types: Vec<(&'static str, DType)>,
}

impl TileForm {
    /// What a dispatch of `form` says, with operands stored as `operands`.
    pub(crate) fn of(form: &Form, reads: Reads, adapter: &Adapter, operands: [DType; 2]) -> Self {
        match form {
            Form::Tiled(tiles) if reads == Reads::Elements => Self { constants: tiles.constants(), types: Vec::new() },
            Form::Tiled(tiles) => Self::new(adapter, operands, *tiles),
            Form::Coop(tiles) => Self { constants: tiles.constants(), types: Vec::new() },
            // It has no workgroup memory, which is what a depth is of.
            Form::Direct(tiles) => {
                let constants = tiles.constants().into_iter().filter(|(name, _)| *name != "DEPTH").collect();
                Self { constants, types: Vec::new() }
            }
            Form::Narrow | Form::Thin => Self { constants: Vec::new(), types: Vec::new() },
        }
    }

    /// The form for two operands by `tiles`: in f16 where both are and the device has the type, which takes half the memory and so may be deeper.
    fn new(adapter: &Adapter, operands: [DType; 2], tiles: Tiles) -> Self {
        let is_f16 = operands == [DType::F16; 2] && adapter.has_f16();
        match adapter.f16_places().filter(|_| is_f16) {
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
    /// How many products of two operands in f16 are added in f16 before their sum is added in f32: of a matrix product, convolution or gradient
    /// by tiles of vectors, where [`f16_accumulation`](Self::f16_accumulation) allows it, on hardware with [`wgpu::Features::SHADER_F16`].
    /// `None` where all are added in f32.
    pub fn f16_places(&self) -> Option<usize> {
        let adds_in_f16 = self.f16_accumulation && self.kind == AdapterKind::Hardware && self.has_f16();
        adds_in_f16.then_some(F16_PLACES)
    }
}
