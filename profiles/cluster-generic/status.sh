#!/bin/sh
# Prints what has become of a SLURM job: running, success or failed. Asks the queue first, which needs no accounting
# database but forgets ended jobs after some minutes, then the database. What neither knows, asked thrice, is gone.
for _ in 1 2 3; do
  state=$(squeue --noheader --states=all --jobs="$1" --format=%T 2> /dev/null | head -n 1)
  [ -n "$state" ] || state=$(sacct -nXP --jobs="$1" --format=State 2> /dev/null | head -n 1)
  [ -z "$state" ] || break
  sleep 5
done
case "$state" in
  COMPLETED) echo success ;;
  PENDING | CONFIGURING | RUNNING | COMPLETING | SUSPENDED | STOPPED | SIGNALING | REQUEUED | STAGE_OUT) echo running ;;
  *) echo failed ;;
esac
