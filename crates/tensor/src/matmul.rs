use std::rc::Rc;

use brisk_kernels::{Epilogue, Matmul, Transpose};

use crate::{Error, Tensor};

impl Tensor {
    /// The matrix product `op(self) op(b)`.
    ///
    /// # Shapes
    /// `self`: `[m, k]`, or `[k, m]` if transposed; `b`: `[k, n]`, or `[n, k]`; the result `[m, n]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.matmul` of two matrices.
    pub fn matmul(&self, b: &Self, transpose: Transpose) -> Result<Self, Error> {
        const OP: &str = "matmul";
        let graph = self.graph();
        graph.check_own(OP, "b", b)?;
        let (m, k) = turned(self.matrix(OP, "a")?, transpose.a());
        let (b_rows, n) = turned(b.matrix(OP, "b")?, transpose.b());
        if b_rows != k {
            let expected = format!("{k} along the dimension summed over");
            return Err(Error::Shape { op: OP, arg: "b", expected, found: b.shape().to_vec() });
        }
        let kernel = Matmul { m, n, k, transpose, epilogue: Epilogue::None };
        let (dtype, [a, b]) = graph.operands(OP, &kernel, [self, b])?;
        let y = graph.transient(OP, dtype, m * n);
        graph.push(kernel, &[a.slice(), b.slice(), y])?;
        let (a_id, a_slice, b_id, b_slice) = (a.id(), a.slice(), b.id(), b.slice());
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            let product = |m, n, k, transpose| Matmul { m, n, k, transpose, epilogue: Epilogue::None };
            if backward.wants(a_id) {
                // da = dy op(b)ᵀ, turned if `a` is stored turned.
                match transpose.a() {
                    false => backward.give(a_id, product(m, k, n, Transpose::of(false, !transpose.b())), &[dy, b_slice])?,
                    true => backward.give(a_id, product(k, m, n, Transpose::of(transpose.b(), true)), &[b_slice, dy])?,
                }
            }
            if backward.wants(b_id) {
                match transpose.b() {
                    false => backward.give(b_id, product(k, n, m, Transpose::of(!transpose.a(), false)), &[a_slice, dy])?,
                    true => backward.give(b_id, product(n, k, m, Transpose::of(true, transpose.a())), &[dy, a_slice])?,
                }
            }
            Ok(())
        };
        graph.result(OP, &[&a, &b], y, &[m, n], None, Rc::new(rule))
    }
}

fn turned((rows, cols): (usize, usize), transposed: bool) -> (usize, usize) {
    if transposed { (cols, rows) } else { (rows, cols) }
}
