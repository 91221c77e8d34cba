use brisk_kernels::{Access, Adapter, Arg, DType, Dispatch, Kernel, Signature, TwinArgs};

use crate::plan::Plan;
use crate::plan::layout::Place;
use crate::record::persistent::Persistent;
use crate::record::program::{Buffer, Program, Slice};

/// Reads some buffers and writes some; the values do not matter to a plan.
#[derive(Debug)]
struct Touch(Vec<Arg>);

impl Kernel for Touch {
    fn signature(&self) -> Signature {
        Signature::new("touch", self.0.clone())
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, brisk_kernels::Error> {
        Ok(vec![])
    }

    fn twin(&self, _: &mut TwinArgs<'_>) {}
}

/// SplitMix64 (Steele, Lea & Flood 2014).
fn below(state: &mut u64, n: usize) -> usize {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) % n as u64) as usize
}

fn random_program(seed: u64) -> Program {
    let mut state = seed;
    let mut program = Program::new(format!("random {seed}"));
    let mut written: Vec<Slice> = vec![program.persistent(&Persistent::new("input", DType::F32, 8))];
    for i in 0..1 + below(&mut state, 40) {
        let (mut args, mut slices) = (Vec::new(), Vec::<Slice>::new());
        for _ in 0..below(&mut state, 4) {
            let slice = written[below(&mut state, written.len())];
            if !slices.contains(&slice) {
                args.push(Arg {
                    name: "r",
                    dtype: DType::F32,
                    len: slice.len(),
                    access: [Access::Read, Access::ReadWrite][below(&mut state, 2)],
                });
                slices.push(slice);
            }
        }
        let mut fresh = Vec::new();
        for _ in 0..below(&mut state, 3) {
            let len = 1 + below(&mut state, 1000);
            fresh.push(program.transient(format!("t{i}"), DType::F32, len));
            args.push(Arg::write("w", DType::F32, len));
        }
        slices.extend(&fresh);
        args.extend((0..below(&mut state, 2)).map(|_| Arg::scratch("s", DType::F32, 100)));
        program.push(Touch(args), &slices).expect("the arguments are made for the slices");
        written.extend(fresh);
    }
    program
}

/// The steps from the first use of a buffer to the last.
fn life(program: &Program, buffer: usize) -> Option<std::ops::RangeInclusive<usize>> {
    let names = |i: &usize| program.steps[*i].args.iter().any(|arg| arg.buffer == buffer);
    let first = (0..program.n_kernels()).find(names)?;
    Some(first..=(0..program.n_kernels()).rfind(names)?)
}

#[track_caller]
fn check(program: &Program, plan: &Plan) {
    let slots: Vec<_> = plan.slots.iter().map(|slot| slot.len_bytes).collect();
    for (i, buffer) in program.buffers.iter().enumerate() {
        let life_of_i = if buffer.persistent.is_some() { None } else { life(program, i) };
        assert_eq!(plan.place_of(i).is_some(), life_of_i.is_some(), "{}: buffer {i} has a place if it is used", program.name());
        let (Some(place), Some(a)) = (plan.place_of(i), life_of_i) else { continue };
        let bytes = |place: Place, buffer: &Buffer| place.start_bytes..place.start_bytes + buffer.len_bytes();
        let bytes_of_i = bytes(place, buffer);
        assert!(bytes_of_i.end <= slots[place.slot], "{}: buffer {i} fits its slot", program.name());
        assert!(place.start_bytes.is_multiple_of(256), "{}: buffer {i} starts where an adapter binds", program.name());
        for (j, other) in program.buffers[..i].iter().enumerate() {
            let Some(place_of_j) = plan.place_of(j).filter(|other| other.slot == place.slot) else { continue };
            let (b, bytes_of_j) = (life(program, j).expect("it has a place, so it is used"), bytes(place_of_j, other));
            let at_once = a.start() <= b.end() && b.start() <= a.end();
            let over = bytes_of_i.start < bytes_of_j.end && bytes_of_j.start < bytes_of_i.end;
            assert!(!(at_once && over), "{}: {i} and {j} overlap while both are alive", program.name());
            assert!(
                !is_written_beside(program, i, j),
                "{}: a kernel uses {i} and {j} in one buffer and writes one",
                program.name()
            );
        }
    }
    let least = plan.least_transient_bytes();
    assert_eq!(plan.transient_bytes(), slots.iter().sum::<usize>(), "{}", program.name());
    assert!(plan.transient_bytes() <= plan.unshared_bytes(), "{}: sharing never costs", program.name());
    assert!((most_alive(program)..=plan.transient_bytes()).contains(&least), "{}: the live bytes fit", program.name());
}

/// Whether a kernel uses both and writes one.
fn is_written_beside(program: &Program, i: usize, j: usize) -> bool {
    program.steps.iter().any(|step| {
        let given = |buffer| step.args.iter().filter(move |arg| arg.buffer == buffer);
        let writes = |buffer| given(buffer).any(|arg| arg.access.writes());
        given(i).count() > 0 && given(j).count() > 0 && (writes(i) || writes(j))
    })
}

fn most_alive(program: &Program) -> usize {
    let is_alive = |i: usize, step: usize| life(program, i).is_some_and(|life| life.contains(&step));
    let alive = |step| -> usize {
        let transients = program.buffers.iter().enumerate().filter(|(_, buffer)| buffer.persistent.is_none());
        transients.filter(|(i, _)| is_alive(*i, step)).map(|(_, buffer)| buffer.len_bytes()).sum()
    };
    (0..program.n_kernels()).map(alive).max().unwrap_or(0)
}

#[test]
fn no_two_that_live_at_once_share_a_slot() {
    for seed in 0..300 {
        let program = random_program(seed);
        check(&program, &program.plan().expect("only what was written is read"));
    }
}
