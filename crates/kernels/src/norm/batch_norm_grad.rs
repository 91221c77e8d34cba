//! The gradients of a batch normalisation, all of which are expressions.

use crate::dtype::DType;
use crate::expr::{Activation, Expr};
use crate::map::map::{Map, MapOutput};
use crate::map::map_input::MapInput;
use crate::norm::batch_norm_shape::{BatchNormShape, Half};
use crate::reduce::map_reduce::MapReduce;
use crate::reduce::reduce_op::Reducer;

impl BatchNormShape {
    /// One of the two sums of [`grad_sums`](Self::grad_sums), `[2, n_groups, n_channels]`.
    fn sum(&self, half: Half) -> MapInput {
        let (g, c) = (self.n_groups, self.n_channels);
        MapInput {
            strides: vec![c, c, 1],
            offset: half as usize * (self.n_stats() / 2),
            len: self.n_stats(),
            ..MapInput::new(&[g, 1, c], DType::F32)
        }
    }

    /// The kernel of the gradient before the activation of [`normalise`](Self::normalise), from the one after it:
    /// `grad_z = grad_y · act'(z)`, with `z` recomputed from `x`.
    ///
    /// # Shapes
    /// Its arguments are `grad_y`, then those of [`normalise`](Self::normalise) except `y`, then `grad_z`,
    /// `[n_rows, n_channels]`.
    /// # Dtypes
    /// f32; `grad_y`, `x` and `grad_z` in f16 and bf16 by [`stored`](crate::stored).
    pub fn activation_grad(&self, activation: &Activation) -> Map {
        let of_x = [1, 2, 3, 4, 5].map(Expr::input);
        let expr = activation.grad().substitute(&[Expr::input(0), Self::normalised().substitute(&of_x)]);
        let mut inputs = vec![self.elements()];
        inputs.extend(self.normalise(activation).inputs);
        self.map(inputs, expr)
    }

    /// The kernel of the sums that the gradients of a batch normalisation need, by group and channel: `Σ grad_y` and
    /// `Σ grad_y x̂`, where `x̂` are the normalised values.
    ///
    /// # Shapes
    /// Its arguments are `grad_y` and `x`, `[n_rows, n_channels]`; `stats` twice, `[n_groups, 2, n_channels]`; and `sums`,
    /// `[2, n_groups, n_channels]`. The groups divide the rows.
    /// # Dtypes
    /// f32; `grad_y` and `x` in f16 and bf16 by [`stored`](crate::stored).
    pub fn grad_sums(&self) -> MapReduce {
        let [grad_y, x, mean, inv_std] = [0, 1, 2, 3].map(Expr::input);
        let normalised = (x - mean) * inv_std;
        MapReduce {
            shape: self.grouped().to_vec(),
            inputs: vec![self.elements(), self.elements(), self.statistic(Half::First), self.statistic(Half::Second)],
            exprs: vec![grad_y.clone(), grad_y * normalised],
            op: Reducer::Sum,
            dims: vec![1],
            results: vec![Expr::input(0), Expr::input(1)],
        }
    }

    /// The kernel of the gradient of the bias, from `sums` to `[n_channels]`.
    ///
    /// # Shapes
    /// Its arguments are `sums` of [`grad_sums`](Self::grad_sums), and `grad_bias`, `[n_channels]`.
    pub fn grad_bias(&self) -> MapReduce {
        self.sum_over_groups(Half::First)
    }

    /// The kernel of the gradient of the weight; its arguments are those of [`grad_bias`](Self::grad_bias).
    pub fn grad_weight(&self) -> MapReduce {
        self.sum_over_groups(Half::Second)
    }

    fn sum_over_groups(&self, half: Half) -> MapReduce {
        let shape = [self.n_groups, 1, self.n_channels];
        MapReduce { inputs: vec![self.sum(half)], ..MapReduce::of(Reducer::Sum, &shape, &[0, 1]) }
    }

    /// The kernel of the gradient of `x`, if the statistics are those of the batch and depend on it:
    /// `grad_x = weight / √(var + ε) · (grad_y - (Σ grad_y + x̂ Σ grad_y x̂) / m)`, where `m` is the number of rows of a group.
    ///
    /// # Shapes
    /// Its arguments are `grad_y` and `x`, `[n_rows, n_channels]`; `stats` twice, `[n_groups, 2, n_channels]`; `weight`,
    /// `[n_channels]`; `sums` twice, `[2, n_groups, n_channels]`, of [`grad_sums`](Self::grad_sums); and `grad_x`,
    /// `[n_rows, n_channels]`.
    /// # Dtypes
    /// f32; `grad_y`, `x` and `grad_x` in f16 and bf16 by [`stored`](crate::stored).
    pub fn grad_x(&self) -> Map {
        let [grad_y, x, mean, inv_std, weight, sum, sum_x] = [0, 1, 2, 3, 4, 5, 6].map(Expr::input);
        let share = 1.0 / self.group_rows() as f32;
        // The CPU computes what depends on the channel only once for each.
        let of_batch = (x - mean) * (&inv_std * sum_x * share) + sum * share;
        self.map(
            vec![
                self.elements(),
                self.elements(),
                self.statistic(Half::First),
                self.statistic(Half::Second),
                self.channels(),
                self.sum(Half::First),
                self.sum(Half::Second),
            ],
            (grad_y - of_batch) * (inv_std * weight),
        )
    }

    /// The kernel of the factors of [`weighted_grad_x`](Self::weighted_grad_x).
    ///
    /// # Shapes
    /// Its arguments are `stats`, `[n_groups, 2, n_channels]`; `weight`, `[n_channels]`; `sums` twice,
    /// `[2, n_groups, n_channels]`; and three results, `[n_groups, n_channels]`.
    pub fn weighted_grad_factors(&self, n_weights: usize) -> Map {
        let [inv_std, weight, sum, sum_x] = [0, 1, 2, 3].map(Expr::input);
        let factor = inv_std.clone() * weight;
        let share = n_weights as f32 / self.n_rows.max(1) as f32;
        let of_sum = factor.clone() * share;
        let exprs = [factor, of_sum.clone() * sum, of_sum * inv_std * sum_x];
        Map {
            shape: vec![self.n_groups, 1, self.n_channels],
            inputs: vec![self.statistic(Half::Second), self.channels(), self.sum(Half::First), self.sum(Half::Second)],
            outputs: exprs.map(|expr| MapOutput { expr, dtype: DType::F32 }).to_vec(),
        }
    }

    /// [`grad_x`](Self::grad_x) for rows with weights that add up to 1 in each group, each of which is that of
    /// `n_rows / n_weights` consecutive rows: `grad_x = weight / √(var + ε) · (grad_y - row_weight (Σ grad_y + x̂ Σ grad_y x̂))`,
    /// where `row_weight` is the part of a weight that a row has.
    ///
    /// # Shapes
    /// Its arguments are `grad_y` and `x`, `[n_rows, n_channels]`; the weights, `[n_weights]`; `stats`,
    /// `[n_groups, 2, n_channels]`; the three results of [`weighted_grad_factors`](Self::weighted_grad_factors); and `grad_x`,
    /// `[n_rows, n_channels]`. The groups divide the weights.
    /// # Dtypes
    /// f32; `grad_y`, `x` and `grad_x` in f16 and bf16 by [`stored`](crate::stored).
    pub fn weighted_grad_x(&self, n_weights: usize) -> Map {
        let [grad_y, x, row_weight, mean, factor, of_sum, of_sum_x] = [0, 1, 2, 3, 4, 5, 6].map(Expr::input);
        let (g, c) = (self.n_groups, self.n_channels);
        let shape = [g, n_weights / g.max(1), self.n_rows / n_weights.max(1), c];
        let elements = MapInput::new(&shape, DType::F32);
        let row_weights = MapInput::new(&[g, shape[1], 1, 1], DType::F32);
        let mean_of_group =
            MapInput { shape: vec![g, 1, 1, c], strides: vec![c.saturating_mul(2), c, c, 1], ..self.statistic(Half::First) };
        let factors = MapInput::new(&[g, 1, 1, c], DType::F32);
        let inputs = vec![elements.clone(), elements, row_weights, mean_of_group, factors.clone(), factors.clone(), factors];
        let expr = grad_y * factor - row_weight * ((x - mean) * of_sum_x + of_sum);
        Map { shape: shape.to_vec(), inputs, outputs: vec![MapOutput { expr, dtype: DType::F32 }] }
    }

    /// The kernel of the gradient of `x`, if the statistics are the running ones and do not depend on it:
    /// `grad_x = grad_y weight / √(var + ε)`.
    ///
    /// # Shapes
    /// Its arguments are `grad_y`, `[n_rows, n_channels]`; `stats`, `[n_groups, 2, n_channels]`; `weight`, `[n_channels]`; and
    /// `grad_x`, `[n_rows, n_channels]`.
    /// # Dtypes
    /// f32; `grad_y` and `grad_x` in f16 and bf16 by [`stored`](crate::stored).
    pub fn frozen_grad_x(&self) -> Map {
        let [grad_y, inv_std, weight] = [0, 1, 2].map(Expr::input);
        self.map(vec![self.elements(), self.statistic(Half::Second), self.channels()], grad_y * (inv_std * weight))
    }
}
