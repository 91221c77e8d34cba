//! What replicas with different gradients must agree on: whether a step is taken, and the norm of all gradients.

use std::sync::Arc;

use brisk_nn::tensor::DType;
use brisk_nn::tensor::program::kernels::{Arg, SCALER_LEN, STATE_LEN};
use brisk_nn::tensor::program::{HostArgs, HostStep};
use brisk_replicate::{CollectiveExt, CommThread, ReduceOp};

use super::failure::Failure;

/// All replicas skip a step if one of them found a gradient that is not finite.
#[derive(Debug)]
pub(crate) struct AgreeOnSkip(pub(crate) Arc<CommThread>);

impl HostStep for AgreeOnSkip {
    fn name(&self) -> &'static str {
        "agree_on_skip"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read_write("state", DType::U32, STATE_LEN), Arg::read_write("scaler", DType::U32, SCALER_LEN)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        const SKIP_AT: usize = 2;
        const NOT_DUE: u32 = 2;
        let (mut skip, mut verdict) = ([0_u32], [0_u32]);
        args.read(0, SKIP_AT, &mut skip)?;
        args.read(1, 0, &mut verdict)?;
        // All replicas have the same steps due.
        if skip[0] == NOT_DUE {
            return Ok(());
        }
        let mut mine = [skip[0], verdict[0]];
        let worst = self.0.start("agree_on_skip", move |collective| {
            collective.all_reduce(&mut mine, ReduceOp::Max)?;
            Ok(mine)
        });
        let [skip, verdict] = worst.wait()?;
        args.write(0, SKIP_AT, &[skip])?;
        Ok(args.write(1, 0, &[verdict])?)
    }
}

/// The norm over all replicas, from the norm of each.
#[derive(Debug)]
pub(crate) struct NormOfAll(pub(crate) Arc<CommThread>);

impl HostStep for NormOfAll {
    fn name(&self) -> &'static str {
        "norm_of_all"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read_write("norm", DType::F32, 1)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let mut mine = [0.0_f32];
        args.read(0, 0, &mut mine)?;
        let (norms, _) = self.0.all_gather(mine.to_vec(), vec![0.0; self.0.world_size()]).wait()?;
        // Squares of f32 do not overflow in f64. They are added in the order of ranks, so all replicas have the same bits.
        let norm = norms.iter().map(|&norm| f64::from(norm).powi(2)).sum::<f64>().sqrt();
        Ok(args.write(0, 0, &[norm as f32])?)
    }
}
