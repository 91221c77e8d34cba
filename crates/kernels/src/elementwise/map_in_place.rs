use super::{map_cpu, map_module};
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::map::layout::Pattern;
use crate::map::map::Map;
use crate::shader::dispatch::Dispatch;

/// A [`Map`] that writes its output over one of its inputs: `x ← expr(…, x, …)`.
///
/// # Shapes
/// As [`Map`]; the input that is replaced has the shape of the output, without strides. The arguments are the other inputs, then
/// `y0`, which is read and written.
/// # Dtypes
/// As [`Map`]; the replaced input and the output have the same dtype.
/// # Errors
/// Those of [`Map`]; [`Error::Unsupported`] for several outputs, and for an input whose dtype differs from the output's.
/// # Examples
/// ```
/// use brisk_kernels::expr::Expr;
/// use brisk_kernels::{Access, Kernel, Map, MapInPlace};
///
/// // sum += x
/// let add_to = MapInPlace { map: Map::flat(64, Expr::input(0) + Expr::input(1)), input: 1 };
/// add_to.check()?;
/// assert_eq!(add_to.args().iter().map(|arg| arg.access).collect::<Vec<_>>(), [Access::Read, Access::ReadWrite]);
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MapInPlace {
    /// The computation.
    pub map: Map,
    /// Which of its inputs is replaced.
    pub input: usize,
}

impl Kernel for MapInPlace {
    fn signature(&self) -> Signature {
        let mut args = self.map.args();
        if self.input < self.map.inputs.len() {
            args.remove(self.input);
        }
        if let Some(y) = args.last_mut() {
            *y = Arg::read_write(y.name, y.dtype, y.len);
        }
        Signature::new("map_in_place", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.map.check()?;
        let Map { inputs, outputs, .. } = &self.map;
        let expected = "one output, and an input with its shape and element type, contiguous";
        let refused = |found| Err(Error::Unsupported { kernel: self.name(), found, expected });
        let (Some(input), [output]) = (inputs.get(self.input), &outputs[..]) else {
            return refused(format!("input {} of {}, and {} outputs", self.input, inputs.len(), outputs.len()));
        };
        let n = self.map.len();
        let layout = self.map.layout()?;
        let is_whole = layout.patterns[self.input] == Pattern::All || n == 1;
        if !is_whole || input.len != n || input.dtype != output.dtype {
            return refused(format!(
                "`x{}` of shape {:?} with strides {:?} in {}, and an output of shape {:?} in {}",
                self.input, input.shape, input.strides, input.dtype, self.map.shape, output.dtype
            ));
        }
        Ok(())
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![map_module::dispatch(&self.map, &self.args(), &self.map.layout()?, Some(self.input))?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let layout = self.map.layout().expect("the shapes were checked");
        map_cpu::run(&self.map, &layout, Some(self.input), args);
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        let (of_output, others) = dtypes.split_last()?;
        let mut of_map = others.to_vec();
        of_map.insert(self.input, *of_output);
        of_map.push(*of_output);
        Some(Box::new(Self { map: self.map.in_types(&of_map), input: self.input }))
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { map: self.map.cut_to(n)?, input: self.input }))
    }

    fn cost(&self) -> Cost {
        self.map.cost()
    }
}
