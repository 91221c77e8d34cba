use brisk_tensor::{Error, Tensor};

/// The numbers of each column of `x`, `[n_rows, n_columns]`, as `[n_columns, n_rows, 1]`, for a layer `op` that turns each into
/// `dim` numbers; if there are other columns, a failed tensor of its result.
#[track_caller]
pub(crate) fn by_column(op: &'static str, x: &Tensor, n_columns: usize, dim: usize) -> Result<Tensor, Tensor> {
    match *x.shape() {
        [n_rows, found] if found == n_columns => Ok(x.transpose(0, 1).reshape(&[n_columns, n_rows, 1])),
        ref found => {
            let n_rows = found.first().copied().unwrap_or(1);
            let error = Error::Shape { op, arg: "x", expected: format!("[n_rows, {n_columns}]"), found: found.to_vec() };
            Err(x.graph().failed(error, x.dtype(), &[n_rows, n_columns * dim]))
        }
    }
}

/// The rows, `[n_rows, n_columns dim]`, of `[n_columns, n_rows, dim]`.
pub(crate) fn by_row(x: &Tensor) -> Tensor {
    let [n_columns, n_rows, dim] = [0, 1, 2].map(|axis| x.shape()[axis]);
    x.permute(&[1, 0, 2]).reshape(&[n_rows, n_columns * dim])
}
