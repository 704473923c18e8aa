#!/usr/bin/env python3
"""Writes crates/foundation/calendar/tests/golden/rules.tsv: random rules with their first times by python-dateutil.

usage: python3 -m venv V && V/bin/pip install python-dateutil && V/bin/python crates/foundation/calendar/tests/golden.py

Each line has a rule, a start, and the first times, without a time zone. Left out is where dateutil and RFC 5545 differ:

- BYWEEKNO without a day: RFC 5545 takes the weekday of the start, dateutil all seven.
- BYDAY with and without numbers: RFC 5545 takes both, dateutil what is both.
- BYSETPOS with WEEKLY: RFC 5545 counts from the beginning of the week, dateutil from the start in its first week. Here such
  series start with their week.
- BYWEEKNO below -51: dateutil does not see that the last days of a year can be the first week of the next, counted
  from its end.
"""
import datetime
import pathlib
import random
import signal

from dateutil.rrule import rrulestr

DAYS = ["MO", "TU", "WE", "TH", "FR", "SA", "SU"]
PER_FREQUENCY = 90
MOST_TIMES = 12
random.seed(5545)


def some(values, most):
    return sorted(random.sample(list(values), random.randint(1, min(most, len(values)))))


def listed(values):
    return ",".join(map(str, values))


def signed(last, most):
    return listed(n if random.random() < 0.6 else -n for n in some(range(1, last + 1), most))


def rule_of(frequency):
    often = frequency in ("HOURLY", "MINUTELY", "SECONDLY")
    parts = {}
    chance = lambda p: random.random() < p
    if chance(0.6):
        parts["INTERVAL"] = random.choice([2, 3, 4, 5, 7, 9, 10, 12, 15, 20, 30, 45, 60, 90] if often else [2, 3, 4, 5, 7])
    if chance(0.3):
        parts["WKST"] = random.choice(DAYS)
    if chance(0.3):
        parts["BYMONTH"] = listed(some(range(1, 13), 4))
    if frequency == "YEARLY" and chance(0.3):
        parts["BYWEEKNO"] = listed(random.choice([n, n, -n]) for n in some(range(1, 54), 3))
        if any(int(n) < -51 for n in parts["BYWEEKNO"].split(",")):
            del parts["BYWEEKNO"]
    if (frequency == "YEARLY" or often) and chance(0.2):
        parts["BYYEARDAY"] = signed(366, 6)
    if frequency != "WEEKLY" and chance(0.3):
        parts["BYMONTHDAY"] = signed(31, 5)
    if chance(0.5) or ("BYWEEKNO" in parts and not {"BYYEARDAY", "BYMONTHDAY"} & parts.keys()):
        days = some(DAYS, 4)
        if frequency in ("MONTHLY", "YEARLY") and "BYWEEKNO" not in parts and chance(0.5):
            last = 5 if frequency == "MONTHLY" or "BYMONTH" in parts else 53
            days = [f"{random.choice([1, -1]) * random.randint(1, last)}{day}" for day in days]
        parts["BYDAY"] = listed(days)
    if chance(0.4):
        parts["BYHOUR"] = listed(some(range(24), 4))
    if chance(0.3):
        parts["BYMINUTE"] = listed(some([0, 5, 10, 15, 20, 30, 45, 50], 4))
    if frequency == "SECONDLY" and chance(0.5):
        parts["BYSECOND"] = listed(some([0, 10, 15, 30, 45], 3))
    if chance(0.25) and any(name.startswith("BY") for name in parts):
        parts["BYSETPOS"] = listed(random.choice([n, -n]) for n in some(range(1, 9), 2))
    return ";".join([f"FREQ={frequency}", *(f"{name}={value}" for name, value in parts.items())]), parts


def start_of(frequency, parts):
    day = datetime.datetime(2024, 1, 1) + datetime.timedelta(days=random.randrange(1500))
    if frequency == "WEEKLY" and "BYSETPOS" in parts:
        while DAYS[day.weekday()] != parts.get("WKST", "MO"):
            day += datetime.timedelta(days=1)
        return day
    return day + datetime.timedelta(minutes=5 * random.randrange(288))


class TooLong(Exception):
    pass


def give_up(*_):
    raise TooLong


signal.signal(signal.SIGALRM, give_up)


def first_times(rule, start):
    """dateutil looks through all years for what never comes."""
    signal.setitimer(signal.ITIMER_REAL, 1.0)
    try:
        times = []
        for time in rrulestr(rule, dtstart=start):
            times.append(time)
            if len(times) == MOST_TIMES or time.year > 2150:
                break
        return times
    except (TooLong, ValueError):
        return []
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def main():
    lines = []
    for frequency in ["YEARLY", "MONTHLY", "WEEKLY", "DAILY", "HOURLY", "MINUTELY", "SECONDLY"]:
        found = 0
        while found < (PER_FREQUENCY if frequency != "SECONDLY" else 20):
            rule, parts = rule_of(frequency)
            start = start_of(frequency, parts)
            times = first_times(rule, start)
            if times:
                found += 1
                lines.append("\t".join([rule, f"{start:%Y%m%dT%H%M%S}", ",".join(f"{time:%Y%m%dT%H%M%S}" for time in times)]))
    path = pathlib.Path(__file__).parent / "golden" / "rules.tsv"
    path.write_text("\n".join(lines) + "\n")
    print(len(lines), "rules,", path.stat().st_size, "bytes")


main()
