//! The kernel of a [`Map`].

use super::{map_cpu, map_module};
use crate::adapter::adapter::Adapter;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::shader::dispatch::Dispatch;

impl Kernel for Map {
    fn signature(&self) -> Signature {
        Signature::new("map", self.arguments())
    }

    fn check(&self) -> Result<(), Error> {
        self.validate()
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![map_module::dispatch(self, &self.args(), &self.layout()?, None)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let layout = self.layout().expect("the shapes were checked");
        map_cpu::run(self, &layout, None, args);
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        Some(Box::new(self.in_types(dtypes)))
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(self.cut_to(n)?))
    }

    fn as_map(&self) -> Option<&Self> {
        Some(self)
    }

    fn cost(&self) -> Cost {
        let n_ops: usize = self.outputs.iter().map(|output| output.expr.n_ops()).sum();
        let bytes = self.args().iter().map(|arg| arg.len_bytes() as u64).sum();
        Cost { flops: (n_ops * self.len()) as u64, bytes }
    }
}
