//! Sharded state over ranks that are processes, compared with ranks that are threads: gradients in 16 bits, an optimizer of whole
//! matrices, and replicas with different numbers of batches.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_nn::{Init, ParametersBuilder, Placement, StepInputs};
use brisk_replicate::{Collective, Mpi, MpiConfig};
use brisk_train::{
    CheckpointFiles, DataParallel, DataParallelConfig, Error, ReduceOp, TrainerConfig, UnevenInputs, Wire, ZeroStage, run_threads,
};

use crate::gpu::cpu;
use crate::other_ranks::{Make, adam, muon, train_on};
use crate::replicas::CONFIG;
use crate::run::Setting;

#[derive(Clone, Copy)]
struct Case {
    n_ranks: usize,
    zero: ZeroStage,
    wire: Wire,
    make: Make,
    uneven: Option<UnevenInputs>,
}

const fn case(n_ranks: usize, zero: ZeroStage, wire: Wire, make: Make, uneven: Option<UnevenInputs>) -> Case {
    Case { n_ranks, zero, wire, make, uneven }
}

const CASES: [Case; 7] = [
    case(2, ZeroStage::Parameters, Wire::Bf16, muon, None),
    case(3, ZeroStage::Gradients, Wire::F16, adam, None),
    case(4, ZeroStage::Optimizer, Wire::Bf16, muon, None),
    case(4, ZeroStage::Parameters, Wire::F32, muon, None),
    case(3, ZeroStage::Parameters, Wire::F32, muon, Some(UnevenInputs::DividedByActive)),
    case(4, ZeroStage::Gradients, Wire::Bf16, adam, Some(UnevenInputs::DividedByAll)),
    case(2, ZeroStage::Replicated, Wire::F16, adam, Some(UnevenInputs::DividedByActive)),
];

impl Case {
    fn config(&self) -> DataParallelConfig {
        let Self { zero, wire, uneven, .. } = *self;
        DataParallelConfig { zero, wire, uneven, files: CheckpointFiles::OneAReplica, ..CONFIG }
    }

    /// The bytes of all weights after the steps of this replica.
    fn run(&self, replica: &DataParallel) -> Result<Vec<u8>, Error> {
        let weights = if self.uneven.is_some() { self.steps(replica)? } else { self.epochs(replica)? };
        Ok(weights.into_iter().flat_map(f32::to_le_bytes).collect())
    }

    /// Two epochs, whose last batch has too few rows for equal parts.
    fn epochs(&self, replica: &DataParallel) -> Result<Vec<f32>, Error> {
        let config = TrainerConfig { max_epochs: 2, ..Setting::default().config };
        let setting = Setting { hidden: vec![24, 24, 8], n_rows: 117, n_valid: 64, config, ..Setting::default() };
        Ok(train_on(&cpu(1), replica, &setting, self.make, None, None)?.1)
    }

    /// Rank `r` has `r + 1` batches, then joins the others.
    fn steps(&self, replica: &DataParallel) -> Result<Vec<f32>, Error> {
        let shape = [20, 16];
        let mut builder = ParametersBuilder::new();
        builder.add("matrix", &shape, Init::Constant(0.5));
        builder.add("bias", &[320], Init::Constant(0.0));
        let params = replica.shard_parameters(builder.build(0))?;
        let graph = Graph::training("step");
        let grads = Persistent::new("grads", DType::F32, 320);
        let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
        let bound = params.bind(&graph);
        let times = |of: usize, shape: &[usize]| bound.tensors()[of].multiply(&graph.tensor(&grads, shape)).sum(..);
        let loss = times(0, &shape).add(&times(1, &[320]));
        graph.backward(&loss)?;
        replica.gather_parameters(&graph, &params, &bound);
        replica.reduce_gradients(&graph, &params, &bound, ReduceOp::Mean, None);
        (self.make)(&params)?.record(&graph, &params, &inputs);
        replica.gather_stepped(&graph, &params, None);
        graph.advance(&inputs.state);
        let device = cpu(1);
        let step = graph.compile(&device)?;
        params.write_initial(&device)?;
        device.write(&inputs.lr, &[0.01_f32])?;
        for batch in 0..=replica.rank() {
            let value = |i: usize| ((i * 37 + batch * 11 + replica.rank() * 5) % 101) as f32 / 77.0 - 0.6;
            device.write(&grads, &(0..320).map(value).collect::<Vec<_>>())?;
            step.run(1)?;
        }
        replica.join(&step, &params)?;
        let held: Vec<f32> = device.read(params.values())?;
        let is_sharded = params.sharding().is_some_and(|sharding| sharding.values == Placement::Sharded);
        if is_sharded { replica.whole(&params, &held) } else { Ok(held) }
    }
}

/// The variables with the number of a rank's case, and the folder of its result.
const VARIABLES: [&str; 2] = ["BRISK_TEST_CASE", "BRISK_TEST_FOLDER"];

/// What the ranks of [`processes_come_to_the_bits_of_threads`] run.
#[test]
fn as_a_rank() {
    let [Some(case), Some(folder)] = VARIABLES.map(env::var_os) else { return };
    let case = CASES[case.to_str().and_then(|case| case.parse::<usize>().ok()).expect("a number")];
    let mpi = Mpi::start(MpiConfig::default()).expect("MPI starts");
    assert_eq!(mpi.world_size(), case.n_ranks, "as many as were started");
    let replica = DataParallel::new(Box::new(mpi), case.config());
    let weights = case.run(&replica).expect("it trains");
    fs::write(PathBuf::from(folder).join(replica.rank().to_string()), weights).expect("there is room");
    replica.finish().expect("all have got here");
}

#[test]
fn processes_come_to_the_bits_of_threads() -> Result<(), Error> {
    for (number, case) in CASES.iter().enumerate() {
        let Case { n_ranks, zero, wire, .. } = case;
        let threads = run_threads(*n_ranks, &case.config(), |replica| case.run(replica))?;
        let folder = tempfile::tempdir().expect("a folder for a while");
        let mut command = Command::new("mpirun");
        command.args(["-n", &n_ranks.to_string()]).arg(env::current_exe().expect("it runs"));
        command.args(["--exact", "zero_ranks::as_a_rank"]).env(VARIABLES[0], number.to_string()).env(VARIABLES[1], folder.path());
        // What Open MPI requires for root, and on a machine with fewer cores than ranks; MPICH ignores it.
        command.envs([
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
            ("OMPI_MCA_hwloc_base_binding_policy", "none"),
            ("OMPI_MCA_mpi_yield_when_idle", "1"),
        ]);
        let output = command.output().expect("`mpirun` starts; Debian's package openmpi-bin has it");
        assert!(output.status.success(), "case {number}: {}", String::from_utf8_lossy(&output.stderr));
        for (rank, expected) in threads.iter().enumerate() {
            let weights = fs::read(folder.path().join(rank.to_string())).expect("each rank has written its weights");
            assert!(weights == *expected, "case {number}: rank {rank} of {n_ranks}, {zero:?}, {wire:?}: bit for bit");
        }
    }
    Ok(())
}
