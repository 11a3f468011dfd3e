//go:build !race

#include "go_asm.h"
#include "textflag.h"

// The numbers of states are in R8 to R11, the ends of the texts in R12, R13, SI and BX, the place from there in AX (from minus
// the length up to 0), the columns in DX, the table in CX.

#define STEP(TEXT, STATE, COLUMN) \
	MOVBLZX (TEXT)(AX*1), COLUMN \
	IMULL 4(DX)(COLUMN*8), STATE \
	ADDL (DX)(COLUMN*8), STATE \
	MOVWLZX (CX)(STATE*2), STATE

// func runAMD64(s *stride)
TEXT ·runAMD64(SB), NOSPLIT, $0-8
	MOVQ s+0(FP), DI
	MOVQ 8(DI), AX // all are as long
	MOVQ 0(DI), R12
	MOVQ 16(DI), R13
	MOVQ 32(DI), SI
	MOVQ 48(DI), BX
	ADDQ AX, R12
	ADDQ AX, R13
	ADDQ AX, SI
	ADDQ AX, BX
	NEGQ AX
	ADDQ stride_at(DI), AX
	MOVQ stride_ascii(DI), DX
	MOVQ stride_table(DI), CX
	MOVL (stride_states+0)(DI), R8
	MOVL (stride_states+4)(DI), R9
	MOVL (stride_states+8)(DI), R10
	MOVL (stride_states+12)(DI), R11
	TESTQ AX, AX
	JGE  done

	PCALIGN $32
loop:
	MOVL R8, (stride_states+0)(DI)
	MOVL R9, (stride_states+4)(DI)
	MOVL R10, (stride_states+8)(DI)
	MOVL R11, (stride_states+12)(DI)
	STEP(R12, R8, R15)
	STEP(R13, R9, R15)
	STEP(SI, R10, R15)
	STEP(BX, R11, R15)
	LEAL -const_silent(R8), R15
	LEAL -const_silent(R9), R14
	ORL  R14, R15
	LEAL -const_silent(R10), R14
	ORL  R14, R15
	LEAL -const_silent(R11), R14
	ORL  R14, R15
	JS   stop
	INCQ AX
	JNZ  loop

	MOVL R8, (stride_states+0)(DI)
	MOVL R9, (stride_states+4)(DI)
	MOVL R10, (stride_states+8)(DI)
	MOVL R11, (stride_states+12)(DI)
done:
	ADDQ 8(DI), AX
	MOVQ AX, stride_at(DI)
	RET

stop:
	MOVL R8, (stride_next+0)(DI)
	MOVL R9, (stride_next+4)(DI)
	MOVL R10, (stride_next+8)(DI)
	MOVL R11, (stride_next+12)(DI)
	JMP  done
