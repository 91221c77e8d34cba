use std::ops::ControlFlow;
use std::time::Instant;

use brisk_nn::tensor::program::kernels::STATE_LEN;
use brisk_nn::tensor::program::{Device, Executable};
use brisk_nn::tensor::{Graph, Persistent};

use super::{CountFrom, Feed};
use crate::error::Error;
use crate::standardisation::Standardisation;

/// The feed of a run without a model, to measure how fast it delivers rows.
#[derive(Debug)]
pub struct FeedProbe<'a> {
    graph: Graph,
    executable: Executable,
    state: Persistent,
    feed: Feed<'a>,
}

impl<'a> FeedProbe<'a> {
    /// Records and compiles the gathering of a feed's batches.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the device has no room.
    pub fn new(device: &Device, feed: &Feed<'a>, scale: &Standardisation) -> Result<Self, Error> {
        let graph = Graph::inference("feed");
        let state = Graph::state_buffer();
        feed.record(&graph, scale, &state);
        graph.advance(&state);
        let executable = graph.compile(device)?;
        Ok(Self { graph, executable, state, feed: feed.clone() })
    }

    /// Rows a second, of those that this replica reads: the median of five epochs.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the device fails; [`Error::Stream`] if the source does.
    pub fn rows_per_s(&self) -> Result<f64, Error> {
        let device = self.executable.device();
        let mut rates = Vec::with_capacity(5);
        self.feed.open(device, |open| {
            for epoch in 0..5 {
                device.write(&self.state, &[0_u32; STATE_LEN])?;
                device.wait()?;
                let started = Instant::now();
                open.for_each_range(epoch, CountFrom::Epoch, usize::MAX, |range| {
                    self.executable.run(range.n_batches)?;
                    Ok(ControlFlow::Continue(()))
                })?;
                device.wait()?;
                let n_read = self.feed.n_rows() * self.feed.read_part().len() / self.feed.batch_rows();
                rates.push(n_read as f64 / started.elapsed().as_secs_f64());
            }
            Ok(())
        })?;
        rates.sort_by(f64::total_cmp);
        Ok(rates[rates.len() / 2])
    }

    /// The recorded program, for planning its memory.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }
}
