// Part: patches that are gathered into workgroup memory for tensor cores. Expects put_four, of the part for their size, and HALF.

struct EightChannels {
    low: vec4<f16>,
    high: vec4<f16>,
}

struct Gathered {
    of_0: EightChannels,
    of_1: EightChannels,
    of_2: EightChannels,
    of_3: EightChannels,
}

fn put_eight(at: u32, channels: EightChannels) {
    put_four(at, channels.low);
    put_four(at + 4u, channels.high);
}

fn put(at: u32, gathered: Gathered) {
    put_eight(at, gathered.of_0);
    put_eight(at + HALF / 4u, gathered.of_1);
    put_eight(at + HALF / 2u, gathered.of_2);
    put_eight(at + HALF / 4u * 3u, gathered.of_3);
}
