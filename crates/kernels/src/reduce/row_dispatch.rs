//! How kernels that reduce each row are spread over a GPU.

use crate::adapter::adapter::{Adapter, AdapterKind};
use crate::error::Error;
use crate::shader::dispatch::fold_workgroups;

/// The maximum number of columns for which one invocation processes a whole row even on hardware: sharing the row would leave
/// invocations idle.
const FEW_COLS: usize = 32;
/// The minimum number of columns for which a row keeps a large workgroup busy.
const MANY_COLS: usize = 1024;

/// Entry point, workgroup size and number of workgroups for `n_rows` rows of `n_cols`.
///
/// A module over rows has two entry points. In `row_a_lane` each invocation processes a whole row, without barriers: for narrow
/// rows, and for software adapters, where barriers are extremely slow. In `row_a_group` a workgroup processes a row together, so
/// that loads are coalesced.
pub(crate) struct RowDispatch {
    pub(crate) entry: &'static str,
    pub(crate) constant: (&'static str, f64),
    pub(crate) workgroups: [u32; 3],
}

impl RowDispatch {
    pub(crate) fn choose(kernel: &'static str, adapter: &Adapter, n_rows: usize, n_cols: usize) -> Result<Self, Error> {
        if adapter.kind == AdapterKind::Software || n_cols <= FEW_COLS {
            let workgroups = fold_workgroups(kernel, n_rows.div_ceil(64))?;
            return Ok(Self { entry: "row_a_lane", constant: ("WG", 64.0), workgroups });
        }
        let n_lanes = if n_cols < MANY_COLS { 64.0 } else { 256.0 };
        Ok(Self { entry: "row_a_group", constant: ("WG", n_lanes), workgroups: fold_workgroups(kernel, n_rows)? })
    }
}
