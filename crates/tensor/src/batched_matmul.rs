use std::rc::Rc;

use brisk_kernels::{BatchedMatmul, Transpose};

use crate::{Error, Tensor};

impl Tensor {
    /// The matrix products of many pairs: `op(self[i]) op(b[i])`.
    ///
    /// # Shapes
    /// `self`: `[n_batch, m, k]`, or `[n_batch, k, m]` if transposed; `b`: `[n_batch, k, n]`, or `[n_batch, n, k]`; the result
    /// `[n_batch, m, n]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.bmm`.
    pub fn batched_matmul(&self, b: &Self, transpose: Transpose) -> Result<Self, Error> {
        const OP: &str = "batched_matmul";
        let graph = self.graph();
        graph.check_own(OP, "b", b)?;
        let [n_batch, m, k] = self.matrices("a", transpose.a())?;
        let [b_batch, b_rows, n] = b.matrices("b", transpose.b())?;
        if (b_batch, b_rows) != (n_batch, k) {
            let expected = format!("{n_batch} matrices, and {k} along the dimension summed over");
            return Err(Error::Shape { op: OP, arg: "b", expected, found: b.shape().to_vec() });
        }
        let kernel = BatchedMatmul { n_batch, m, n, k, transpose };
        let (dtype, [a, b]) = graph.operands(OP, &kernel, [self, b])?;
        let y = graph.transient(OP, dtype, n_batch * m * n);
        graph.push(kernel, &[a.slice(), b.slice(), y])?;
        let (a_id, a_slice, b_id, b_slice) = (a.id(), a.slice(), b.id(), b.slice());
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            let product = |m, n, k, transpose| BatchedMatmul { n_batch, m, n, k, transpose };
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
        graph.result(OP, &[&a, &b], y, &[n_batch, m, n], None, Rc::new(rule))
    }

    /// How many matrices there are, and the rows and columns of each as the product takes them.
    fn matrices(&self, arg: &'static str, transposed: bool) -> Result<[usize; 3], Error> {
        match *self.shape() {
            [n_batch, rows, cols] if transposed => Ok([n_batch, cols, rows]),
            [n_batch, rows, cols] => Ok([n_batch, rows, cols]),
            _ => {
                let expected = "three dimensions".to_owned();
                Err(Error::Shape { op: "batched_matmul", arg, expected, found: self.shape().to_vec() })
            }
        }
    }
}
