//! Which dispatches a matrix product is on an adapter.

use crate::{Dispatch, Error, MAX_WORKGROUPS, Matmul, fold_workgroups};

/// Rows a workgroup of `matmul_direct.wgsl` computes.
const DIRECT_ROWS: usize = 4;
/// Columns likewise: 8 lanes of a vec4.
const DIRECT_COLS: usize = 32;
/// Rows and columns a workgroup of `matmul.wgsl` computes.
const PLAIN_ROWS: usize = 4;
const PLAIN_COLS: usize = 8;

/// The ways in which a matrix product is computed on a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MatmulFamily {
    /// Register blocks, no barriers: for software adapters, and for results too small to fill a hardware one with tiles.
    Direct,
    /// Tiles of both operands in workgroup memory: for hardware.
    Tiled,
}

/// The dispatches of `matmul`, whose result is argument `y_arg`.
pub(crate) fn dispatches(matmul: &Matmul, y_arg: usize, _family: MatmulFamily) -> Result<Vec<Dispatch>, Error> {
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let b_turned = y_arg + 1;
    let mut dispatches = Vec::with_capacity(2);
    if transpose.b() {
        dispatches.push(Dispatch {
            label: "kernels.matmul.transpose",
            wgsl: include_str!("wgsl/matmul_transpose.wgsl"),
            entry: "main",
            constants: vec![],
            params: bytemuck::cast_slice(&[n as u32, k as u32, 0, 0]).to_vec(),
            reads: vec![1],
            writes: vec![b_turned],
            workgroups: fold_workgroups("matmul", (n * k).div_ceil(64))?,
        });
    }
    let b = if transpose.b() { b_turned } else { 1 };
    let fused = if y_arg == 3 { 2 } else { b };
    let vectors = n.is_multiple_of(4);
    let (rows, cols) = if vectors { (DIRECT_ROWS, DIRECT_COLS) } else { (PLAIN_ROWS, PLAIN_COLS) };
    let (n_row_groups, n_col_groups) = (m.div_ceil(rows), n.div_ceil(cols));
    if n_col_groups > MAX_WORKGROUPS as usize {
        return Err(Error::Size { kernel: "matmul", size: "n", found: n, expected: "at most 65535 column blocks" });
    }
    let z = n_row_groups.div_ceil(MAX_WORKGROUPS as usize);
    let mut constants = matmul.activation().constants();
    constants.push(("EPILOGUE", f64::from(matmul.epilogue_code())));
    constants.push(("TRANSPOSE_A", f64::from(u8::from(transpose.a()))));
    dispatches.push(Dispatch {
        label: "kernels.matmul",
        wgsl: if vectors { include_str!("wgsl/matmul_direct.wgsl") } else { include_str!("wgsl/matmul.wgsl") },
        entry: "main",
        constants,
        params: bytemuck::cast_slice(&[m as u32, n as u32, k as u32, 0]).to_vec(),
        reads: vec![0, b, fused],
        writes: vec![y_arg],
        workgroups: [n_col_groups as u32, n_row_groups.div_ceil(z) as u32, z as u32],
    });
    Ok(dispatches)
}
