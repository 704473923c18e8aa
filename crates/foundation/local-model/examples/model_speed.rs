//! Measures the embedded model: tokens per second of prompt and generation, and memory.
//!
//! `cargo run --release -p local-model --example model_speed -- [FILE] [THREADS] [ROUNDS]`
//!
//! A round has a prompt of about 290 tokens and an answer of 128 tokens. Prompts differ from their first words on, so
//! no cached prefix is used. The output shows medians.
#![expect(clippy::print_stdout, reason = "a program for the command line")]

use std::{error::Error, path::Path, time::Instant};

use local_model::{Engine, Event, Message, Options, Request, Role};

const TEXT: &str = "The old harbour of the town lies between two hills. In the morning the boats come back with \
    fish, and people buy it where it is landed. At noon the square is empty, because the sun is strong and there \
    is little shade. In the evening music is heard from the houses, and children play football against the wall \
    of the church until it is too dark to see the ball. ";

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let file = arguments.next().unwrap_or_else(|| ".cache/models/smollm2-135m-instruct.gguf".to_owned());
    let threads = arguments.next().map(|threads| threads.parse()).transpose()?;
    let rounds: u32 = arguments.next().map_or(Ok(7), |rounds| rounds.parse())?;

    let started = Instant::now();
    let engine = Engine::load(Path::new(&file), Options { threads, ..Options::default() })?;
    println!("model           {} with a context of {} tokens", engine.label(), engine.context_tokens());
    println!("load            {:.2} s", started.elapsed().as_secs_f64());
    println!("resident loaded {} MiB", status("VmRSS")? / 1024);

    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let (mut prompts, mut outputs) = (Vec::new(), Vec::new());
    for round in 0..=rounds {
        let text = format!("Story {round}. {}Continue this story at length.", TEXT.repeat(3));
        let request = Request {
            messages: vec![
                Message::new(Role::System, format!("Round {round}.")),
                Message::new(Role::User, text),
            ],
            max_output_tokens: 128,
            seed: u64::from(round),
            ..Request::default()
        };
        let mut generation = engine.generate(request)?;
        let done = runtime.block_on(async {
            loop {
                match generation.next().await {
                    Some(Event::Done(done)) => break Ok(done),
                    Some(Event::Failed(error)) => break Err(error),
                    _ => (),
                }
            }
        })?;
        // The first round is a warm-up.
        if round > 0 {
            let prompt = f64::from(done.prompt_tokens) / done.prompt_time.as_secs_f64();
            let output = f64::from(done.output_tokens) / done.output_time.as_secs_f64();
            println!(
                "round {round}: {} prompt tokens {prompt:.1}/s, {} output tokens {output:.1}/s",
                done.prompt_tokens, done.output_tokens
            );
            prompts.push(prompt);
            outputs.push(output);
        }
    }
    println!("prompt          {:.1} tokens/s", median(prompts));
    println!("generation      {:.1} tokens/s", median(outputs));
    println!("resident after  {} MiB, at most {} MiB", status("VmRSS")? / 1024, status("VmHWM")? / 1024);
    Ok(())
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Returns a value of /proc/self/status in KiB.
fn status(name: &str) -> Result<u64, Box<dyn Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).ok_or("no such line")?;
    Ok(line.split_whitespace().nth(1).ok_or("no value")?.parse()?)
}
