use lockworks_check::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut c = Config::new(&a[1]);
    c.threads = a[2].parse().unwrap();
    c.acquisitions = a[3].parse().unwrap();
    if a[4] == "sc" {
        c.memory = Memory::Sc;
    }
    for x in &a[5..] {
        let (k, v) = x.split_once('=').unwrap();
        match k {
            "nodes" => c.nodes = v.parse().unwrap(),
            "slots" => c.slots = Some(v.parse().unwrap()),
            "nest" => c.nesting = v.parse().unwrap(),
            "try" => c.trylock = v == "1",
            "k" => c.staleness = Some(v.parse().unwrap()),
            "over" => c.overtaking = Some(v.parse().unwrap()),
            "time" => {
                c.time = match v {
                    "late" => Time::Late,
                    "early" => Time::Early,
                    _ => Time::Any,
                }
            }
            "shuffle" => c.tunables.shuffle_reduction = v == "1",
            "prio" => c.priority = v.split(',').map(|x| x.parse().unwrap()).collect(),
            _ => panic!(),
        }
    }
    let l = Limits {
        time: Some(std::time::Duration::from_secs(300)),
        ..Limits::NONE
    };
    let ch = Check::new(&c, None).unwrap();
    let o = ch.run(&l, &mut |_| {});
    println!(
        "{} : {:?} {:?} {:.2}s",
        c,
        match &o.end {
            End::Broken(b) => format!("{} in {} steps", b.violation, b.steps()),
            e => format!("{e:?}"),
        },
        o.coverage,
        o.time.as_secs_f64()
    );
    if let End::Broken(b) = &o.end {
        let b = ch.shorten(
            &Limits {
                states: Some(3_000_000),
                ..Limits::NONE
            },
            b.clone(),
        );
        println!("{} steps {}", b.steps(), b.violation);
        for (i, t) in ch.trace(&b).iter().enumerate() {
            println!(
                "{:3} t{} {:18} {:55} {:10} {:40} {} {}",
                i + 1,
                t.thread,
                t.place,
                t.operation,
                t.order,
                t.effect,
                t.word,
                t.queue
            );
        }
    }
}
