//! Two [`Map`]s, one of which reads the output of the other, as one.

use super::layout::Pattern;
use super::map::Map;
use super::map_input::MapInput;
use crate::dtype::DType;
use crate::expr::Expr;

/// The maximum number of operations of a fused expression.
const MAX_OPS: usize = 128;

impl Map {
    /// The kernel that computes this one, whose input `input` is the output of `producer`, without storing that output in memory:
    /// its inputs are those of `producer`, then the others of this one. `None` if the two cannot be fused: if the value between
    /// them is rounded to 16 bits or not read whole and in order, or if there would be too many arguments.
    ///
    /// On the CPU the results are bit-identical to those of the two kernels.
    ///
    /// # Examples
    /// ```
    /// use brisk_kernels::Map;
    /// use brisk_kernels::expr::Expr;
    ///
    /// let sum = Map::new(Expr::input(0) + Expr::input(1), &[&[32, 64], &[64]])?;
    /// let activation = Map::flat(32 * 64, Expr::input(0).gelu());
    /// let fused = activation.fused_with(0, &sum).expect("all of it is f32");
    /// assert_eq!(fused, Map::new((Expr::input(0) + Expr::input(1)).gelu(), &[&[32, 64], &[64]])?);
    /// # Ok::<(), brisk_kernels::Error>(())
    /// ```
    pub fn fused_with(&self, input: usize, producer: &Self) -> Option<Self> {
        let between = self.inputs.get(input)?;
        let [value] = &producer.outputs[..] else { return None };
        let is_exact = value.dtype == DType::F32 && between.dtype == DType::F32;
        let is_whole = between.len == producer.len()
            && between.len == self.len()
            && *between == MapInput::new(&between.shape, between.dtype);
        if !is_exact || !is_whole {
            return None;
        }
        let (producer, consumer) = if producer.shape == self.shape {
            (producer.clone(), self.clone())
        } else if let Some(producer) = producer.reshaped(&self.shape) {
            (producer, self.clone())
        } else {
            (producer.clone(), self.reshaped(&producer.shape)?)
        };
        let n_before = producer.inputs.len();
        let mut n_others = 0;
        let inputs: Vec<Expr> = (0..consumer.inputs.len())
            .map(|i| {
                if i == input {
                    return producer.outputs[0].expr.clone();
                }
                n_others += 1;
                Expr::input(n_before + n_others - 1)
            })
            .collect();
        let mut fused = consumer;
        fused.outputs.iter_mut().for_each(|output| output.expr = output.expr.substitute(&inputs));
        fused.inputs.remove(input);
        fused.inputs.splice(0..0, producer.inputs);
        let is_small = fused.outputs.iter().all(|output| output.expr.n_ops() <= MAX_OPS);
        (is_small && fused.validate().is_ok()).then_some(fused)
    }

    /// The same kernel with one input in place of two equal ones: `kept` also for `dropped`.
    ///
    /// # Panics
    /// If there are fewer inputs, or these two differ.
    pub fn with_one_input(&self, kept: usize, dropped: usize) -> Self {
        assert_eq!(self.inputs[kept], self.inputs[dropped], "two inputs that are to be one");
        let place = |i: usize| if i < dropped { i } else { i - 1 };
        let inputs: Vec<Expr> = (0..self.inputs.len()).map(|i| Expr::input(place(if i == dropped { kept } else { i }))).collect();
        let mut map = self.clone();
        map.outputs.iter_mut().for_each(|output| output.expr = output.expr.substitute(&inputs));
        map.inputs.remove(dropped);
        map
    }

    /// The same kernel with a different shape of the same number of elements, unless an input repeats or has strides.
    fn reshaped(&self, shape: &[usize]) -> Option<Self> {
        let mut reshaped = self.cut_to(self.len())?;
        reshaped.shape = shape.to_vec();
        reshaped.inputs.iter_mut().filter(|input| input.len > 1).for_each(|input| *input = input.reshaped(shape));
        Some(reshaped)
    }

    /// The expression, if this kernel maps whole f32 inputs and random numbers element by element, as an epilogue does.
    pub(crate) fn as_plain(&self) -> Option<&Expr> {
        let [output] = &self.outputs[..] else { return None };
        let layout = self.layout().ok()?;
        let is_plain = |(input, pattern): (&MapInput, &Pattern)| {
            let is_whole = input.dtype == DType::F32 && input.len == self.len() && (*pattern == Pattern::All || self.len() == 1);
            is_whole || input.draws.is_some()
        };
        (output.dtype == DType::F32 && self.inputs.iter().zip(&layout.patterns).all(is_plain)).then_some(&output.expr)
    }
}
