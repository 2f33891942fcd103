#!/bin/sh
# Estimates every line of a file as a job array, and joins the parts in order:
#   batch-array.sh jobs.jsonl answers.jsonl 16 a100-80gb
set -eu
jobs=$(realpath "$1") answers=$(realpath -m "$2") parts=$3 gpu=$4
folder=$(mktemp -d "$(dirname "$answers")/batch-XXXXXX")
cat > "$folder/part.sh" <<'END'
#!/bin/sh
exec memfathom estimate --batch "$1" --slim --gpu "$2" --shard "$SLURM_ARRAY_TASK_ID/$3" --output "$4/$SLURM_ARRAY_TASK_ID.jsonl"
END
cat > "$folder/join.sh" <<'END'
#!/bin/sh
set -eu
i=0
while [ "$i" -lt "$1" ]; do cat "$2/$i.jsonl"; i=$((i + 1)); done > "$3.partial"
mv "$3.partial" "$3"
END
array=$(sbatch --parsable --array="0-$((parts - 1))" --output="$folder/%a.log" "$folder/part.sh" "$jobs" "$gpu" "$parts" "$folder")
sbatch --parsable --dependency="afterok:${array%%;*}" --output="$folder/join.log" "$folder/join.sh" "$parts" "$folder" "$answers"
