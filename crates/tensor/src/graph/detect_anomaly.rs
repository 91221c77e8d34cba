use brisk_kernels::{DType, FIRST_NON_FINITE_LEN, bytemuck};
use brisk_program::{Device, Persistent};

use crate::error::Error;
use crate::graph::anomaly::{Anomaly, Pass, Place, Watch};
use crate::graph::tensor::Tensor;
use crate::graph::{Graph, Inner};

/// The value on the device while all values are finite.
const NONE: [u32; FIRST_NON_FINITE_LEN] = [0; FIRST_NON_FINITE_LEN];

impl Inner {
    fn watching(&self, op: &'static str) -> Result<&Watch, Error> {
        self.watch.as_ref().ok_or_else(|| Error::NotDetecting { op, graph: self.program.name().to_owned() })
    }
}

impl Graph {
    /// From now on, checks the result of each operation, in the backward pass each gradient, and operands from outside the graph.
    /// The first value that is not finite is recorded on the device; [`first_anomaly`](Self::first_anomaly) names its operation.
    ///
    /// This is for debugging, not for training: every value is read once more.
    ///
    /// With a loss scale, gradients overflow in each step that tries a scale that is too high; such a step is skipped and is no
    /// error. So check after every step. If a skipped step has an anomaly in [`Pass::Backward`], clear it with
    /// [`clear_anomaly`](Self::clear_anomaly), unless many steps in a row are skipped. An anomaly in a step that was not skipped,
    /// or in another pass, is not caused by the scale.
    ///
    /// # Errors
    /// [`Error::Refused`] if operations have been recorded already, which would not be checked.
    /// # Reference
    /// `torch.autograd.detect_anomaly`, which checks the backward pass only.
    /// # Examples
    /// ```
    /// use brisk_tensor::program::Device;
    /// use brisk_tensor::{Graph, Pass, Transpose};
    ///
    /// let graph = Graph::inference("too much");
    /// graph.detect_anomaly();
    /// let x = graph.constant("x", &[1e30; 4], &[2, 2]);
    /// let squares = &x * &x; // 1e60, which overflows f32
    /// squares.softmax(1);
    /// let device = Device::cpu()?;
    /// graph.compile(&device)?.run(1)?;
    /// let anomaly = graph.first_anomaly(&device)?.expect("there is one");
    /// assert_eq!((anomaly.operation, anomaly.pass, anomaly.run), ("multiply", Pass::Forward, 1));
    /// println!("{anomaly}");
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn detect_anomaly(&self) {
        if self.inner().watch.is_some() {
            return;
        }
        let recorded = self.inner().nodes.iter().find_map(|node| node.op);
        if let Some(op) = recorded {
            let found = format!("the graph `{}` has operations already, the first of them `{op}`", self.name());
            let expected = "to be called before anything is recorded";
            return self.fail(Error::Refused { op: "detect_anomaly", found, expected });
        }
        let first = Persistent::new("first anomaly", DType::U32, FIRST_NON_FINITE_LEN);
        let mut inner = self.inner_mut();
        inner.constants.push((first.clone(), bytemuck::cast_slice::<_, u8>(&NONE).into()));
        inner.watch = Some(Watch { first, places: Vec::new(), outside: Vec::new() });
    }

    /// The first value that was not finite in all runs on `device` since the graph was compiled or
    /// [cleared](Self::clear_anomaly). Waits for these runs.
    ///
    /// # Errors
    /// [`Error::NotDetecting`]; [`Error::Program`].
    pub fn first_anomaly(&self, device: &Device) -> Result<Option<Anomaly>, Error> {
        let inner = self.inner();
        let watch = inner.watching("first_anomaly")?;
        let first: Vec<u32> = device.read(&watch.first)?;
        let place = (first[0] as usize).checked_sub(1).and_then(|place| watch.places.get(place));
        Ok(place.map(|&Place { operation, index, pass }| Anomaly { run: first[1] as usize, operation, index, pass }))
    }

    /// Clears the anomaly on `device`, so that the next one is recorded; runs are counted from 1 again.
    ///
    /// # Errors
    /// As [`first_anomaly`](Self::first_anomaly).
    pub fn clear_anomaly(&self, device: &Device) -> Result<(), Error> {
        let inner = self.inner();
        Ok(device.write(&inner.watching("clear_anomaly")?.first, &NONE)?)
    }

    /// Records checks of a result, and before it of the operands that come from outside the graph.
    pub(crate) fn watch(&self, result: &Tensor) -> Result<(), Error> {
        let mut inner = self.inner_mut();
        let Inner { program, nodes, watch: Some(watch), .. } = &mut *inner else { return Ok(()) };
        for (operand, &id) in nodes[result.id()].inputs.iter().enumerate() {
            let node = &nodes[id];
            if node.op.is_none() && node.slice.dtype().is_float() && !watch.outside.contains(&id) {
                watch.outside.push(id);
                watch.record(program, node.slice, Place::new(nodes, result.id(), Pass::Operand(operand)))?;
            }
        }
        watch.record(program, result.slice(), Place::new(nodes, result.id(), Pass::Forward))
    }
}
