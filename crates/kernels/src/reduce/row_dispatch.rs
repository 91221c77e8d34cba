//! How kernels that reduce each row are spread over a GPU.

use crate::adapter::adapter::{Adapter, AdapterKind};
use crate::error::Error;
use crate::kernel::kernel::Kernel;
use crate::shader::dispatch::{Dispatch, fold_workgroups};
use crate::shader::module::Module;

/// The maximum number of columns for which one invocation processes a whole row even on hardware: others would be idle.
const FEW_COLS: usize = 32;
/// The minimum number of columns for which a row keeps a large workgroup busy.
const MANY_COLS: usize = 1024;

/// The dispatch of `module` over `n_rows` rows of `n_cols`, which are its first two parameters.
///
/// A module over rows has two entry points. In `row_an_invocation` each invocation processes a whole row, without barriers: for
/// narrow rows, and for software adapters, where barriers are extremely slow. In `row_a_group` a workgroup processes a row
/// together, so that loads are coalesced.
pub(crate) fn row_dispatch(
    kernel: &dyn Kernel,
    label: &'static str,
    module: Module,
    adapter: &Adapter,
    [n_rows, n_cols]: [usize; 2],
) -> Result<Dispatch, Error> {
    let is_narrow = adapter.kind == AdapterKind::Software || n_cols <= FEW_COLS;
    let (entry, n_invocations, n_workgroups) = match n_cols {
        _ if is_narrow => ("row_an_invocation", 64.0, n_rows.div_ceil(64)),
        ..MANY_COLS => ("row_a_group", 64.0, n_rows),
        _ => ("row_a_group", 256.0, n_rows),
    };
    let dispatch = Dispatch::new(label, module, fold_workgroups(kernel.name(), n_workgroups)?);
    Ok(dispatch.entry(entry).constants([("WG", n_invocations)]).param("n_rows", n_rows).param("n_cols", n_cols))
}
