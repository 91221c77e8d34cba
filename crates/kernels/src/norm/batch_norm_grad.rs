use super::batch_norm_grad_cpu;
use crate::core::module::{module, part};
use crate::core::stored_form::{StoredForm, sharing, with_element};
use crate::core::stored_types::{Group, Template};
use crate::{Adapter, Arg, BatchNormShape, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

const BATCH_NORM_GRAD_SUMS: Template =
    Template::new(&[part!("batch_norm_grad_sums.wgsl")], &[Group::one("GRAD_Y").loads(), Group::one("X").loads()]);
const BATCH_NORM_GRAD: Template = Template::new(&[part!("batch_norm_grad.wgsl")], &[Group::lane("X").loads().stores()]);
const BATCH_NORM_FROZEN_GRAD: Template =
    Template::new(&[part!("batch_norm_frozen_grad.wgsl")], &[Group::lane("X").loads().stores()]);

/// What the gradients of a batch normalisation are made of, by group and channel: `sum_grad_y = Σ grad_y` and `sum_grad_y_x = Σ grad_y x̂`, `x̂` being the normalised
/// values.
///
/// Their sums over the groups, each a [`MapReduce`](crate::MapReduce), are the gradients of bias and weight.
///
/// # Shapes
/// `grad_y`, `x`: `[n_rows, n_channels]`; `stats`: `[n_groups, 2, n_channels]`; `sum_grad_y`, `sum_grad_y_x`: `[n_groups, n_channels]`.
/// # Dtypes
/// f32; `grad_y` and `x` in f16 and bf16 by [`stored`](crate::stored). Parts of a group are added in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNormGradSums {
    /// The sizes.
    pub shape: BatchNormShape,
}

impl Kernel for BatchNormGradSums {
    fn name(&self) -> &'static str {
        "batch_norm_grad_sums"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        vec![
            Arg::read("grad_y", DType::F32, shape.len()),
            Arg::read("x", DType::F32, shape.len()),
            Arg::read("stats", DType::F32, shape.n_stats()),
            Arg::write("sum_grad_y", DType::F32, shape.n_stats() / 2),
            Arg::write("sum_grad_y_x", DType::F32, shape.n_stats() / 2),
            Arg::scratch("parts", DType::F32, shape.n_parts_len()),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        self.shape.check(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[DType::F32], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.stored_twin(&[DType::F32], args);
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        let n = self.shape.len() as u64;
        Cost { flops: 5 * n, bytes: 8 * n }
    }
}

impl StoredForm for BatchNormGradSums {
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0, 1], dtypes)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let params = self.shape.params(0.0, 0.0);
        let part = Dispatch {
            label: "kernels.batch_norm_grad_sums",
            wgsl: BATCH_NORM_GRAD_SUMS.module(&[("X", dtypes[0]), ("GRAD_Y", dtypes[0])]),
            entry: "main",
            constants: vec![],
            params: params.clone(),
            reads: vec![0, 1, 2],
            writes: vec![5],
            workgroups: fold_workgroups(self.name(), (self.shape.n_parts_len() / 2).div_ceil(64))?,
        };
        let merge = Dispatch {
            label: "kernels.batch_norm_grad_sums.merge",
            wgsl: module!("batch_norm_grad_sums_merge.wgsl"),
            entry: "main",
            constants: vec![],
            params,
            reads: vec![5],
            writes: vec![3, 4],
            workgroups: fold_workgroups(self.name(), (self.shape.n_stats() / 2).div_ceil(64))?,
        };
        Ok(vec![part, merge])
    }

    fn stored_twin(&self, dtypes: &[DType], args: &mut TwinArgs<'_>) {
        let sums = [args.write(3), args.write(4)];
        let (stats, parts) = (args.read(2), args.write(5));
        with_element!(dtypes[0], T => {
            batch_norm_grad_cpu::sums::<T>(&self.shape, args.read(0), args.read(1), stats, sums, parts);
        });
    }
}

/// The gradient of a batch normalisation in its input, where the statistics are those of the batch and change with it:
/// `grad_x = weight / √(var + ε) · (grad_y - (sum_grad_y + x̂ sum_grad_y_x) / m)`, `m` being the rows of a group.
///
/// # Shapes
/// `grad_y`, `x`, `grad_x`: `[n_rows, n_channels]`; `stats`: `[n_groups, 2, n_channels]`; `weight`: `[n_channels]`; `sum_grad_y`, `sum_grad_y_x`: `[n_groups, n_channels]`,
/// of [`BatchNormGradSums`].
/// # Dtypes
/// f32; `grad_y`, `x` and `grad_x` in f16 and bf16 by [`stored`](crate::stored).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNormGrad {
    /// The sizes.
    pub shape: BatchNormShape,
}

impl Kernel for BatchNormGrad {
    fn name(&self) -> &'static str {
        "batch_norm_grad"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        vec![
            Arg::read("grad_y", DType::F32, shape.len()),
            Arg::read("x", DType::F32, shape.len()),
            Arg::read("stats", DType::F32, shape.n_stats()),
            Arg::read("weight", DType::F32, shape.n_channels),
            Arg::read("sum_grad_y", DType::F32, shape.n_stats() / 2),
            Arg::read("sum_grad_y_x", DType::F32, shape.n_stats() / 2),
            Arg::write("grad_x", DType::F32, shape.len()),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        self.shape.check(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[DType::F32], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.stored_twin(&[DType::F32], args);
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        let n = self.shape.len() as u64;
        Cost { flops: 7 * n, bytes: 12 * n }
    }
}

impl StoredForm for BatchNormGrad {
    /// Invocations take two channels.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0, 1, 6], dtypes).filter(|_| self.shape.n_channels.is_multiple_of(2))
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let shape = self.shape.in_lanes(dtypes[0]);
        Ok(vec![Dispatch {
            label: "kernels.batch_norm_grad",
            wgsl: BATCH_NORM_GRAD.module(&[("X", dtypes[0])]),
            entry: "main",
            constants: vec![],
            params: shape.params(0.0, 0.0),
            reads: vec![0, 1, 2, 3, 4, 5],
            writes: vec![6],
            workgroups: fold_workgroups(self.name(), shape.len().div_ceil(64))?,
        }])
    }

    fn stored_twin(&self, dtypes: &[DType], args: &mut TwinArgs<'_>) {
        let sums = [args.read(4), args.read(5)];
        let (stats, weight) = (args.read(2), args.read(3));
        with_element!(dtypes[0], T => {
            batch_norm_grad_cpu::run::<T>(&self.shape, args.read(0), args.read(1), stats, weight, sums, args.write(6));
        });
    }
}

/// The gradient of a batch normalisation in its input, where the statistics are the running ones and do not depend on it:
/// `grad_x = grad_y weight / √(var + ε)`.
///
/// # Shapes
/// `grad_y`, `grad_x`: `[n_rows, n_channels]`; `stats`: `[1, 2, n_channels]`; `weight`: `[n_channels]`.
/// # Dtypes
/// f32; `grad_y` and `grad_x` in f16 and bf16 by [`stored`](crate::stored).
/// # Errors
/// [`Error::Size`] for more than one group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchNormFrozenGrad {
    /// The sizes, in one group.
    pub shape: BatchNormShape,
}

impl Kernel for BatchNormFrozenGrad {
    fn name(&self) -> &'static str {
        "batch_norm_frozen_grad"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        vec![
            Arg::read("grad_y", DType::F32, shape.len()),
            Arg::read("stats", DType::F32, shape.n_stats()),
            Arg::read("weight", DType::F32, shape.n_channels),
            Arg::write("grad_x", DType::F32, shape.len()),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        if self.shape.n_groups != 1 {
            let expected = "1, since the running statistics are those of all rows";
            return Err(Error::Size { kernel: self.name(), size: "n_groups", found: self.shape.n_groups, expected });
        }
        self.shape.check(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[DType::F32], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.stored_twin(&[DType::F32], args);
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        let n = self.shape.len() as u64;
        Cost { flops: 2 * n, bytes: 8 * n }
    }
}

impl StoredForm for BatchNormFrozenGrad {
    /// Invocations take two channels.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0, 3], dtypes).filter(|_| self.shape.n_channels.is_multiple_of(2))
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let shape = self.shape.in_lanes(dtypes[0]);
        Ok(vec![Dispatch {
            label: "kernels.batch_norm_frozen_grad",
            wgsl: BATCH_NORM_FROZEN_GRAD.module(&[("X", dtypes[0])]),
            entry: "main",
            constants: vec![],
            params: shape.params(0.0, 0.0),
            reads: vec![0, 1, 2],
            writes: vec![3],
            workgroups: fold_workgroups(self.name(), shape.len().div_ceil(64))?,
        }])
    }

    fn stored_twin(&self, dtypes: &[DType], args: &mut TwinArgs<'_>) {
        let (stats, weight) = (args.read(1), args.read(2));
        with_element!(dtypes[0], T => {
            batch_norm_grad_cpu::frozen::<T>(&self.shape, args.read(0), stats, weight, args.write(3));
        });
    }
}
